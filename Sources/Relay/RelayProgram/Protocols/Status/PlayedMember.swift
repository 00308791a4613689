import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// A member of Status's network that the command line plays, phone and sender in one, and what it keeps
/// between two commands: a file of its own, because it holds the account's key.
struct PlayedMember {
    /// A sender keeps what it has learned of people.
    static let limitBytes = 4 << 20

    /// The URL of its Waku node.
    var node: String
    /// Push notification servers that it registers at.
    var servers: [PublicPoint]
    var service: DeviceToken.Service
    /// The app's topic with APNs.
    var topic: String
    /// As a push service would have given it.
    var token: Secret
    private let secret: Secret
    // What the library keeps.
    private var device: Secret
    private var origin: Secret

    /// A key and an installation that are made anew.
    init(
        _ service: DeviceToken.Service, node: String, servers: [PublicPoint], topic: String,
        token: Secret?, _ world: World
    ) throws(CommandFailure) {
        (self.service, self.node, self.servers, self.topic) = (service, node, servers, topic)
        self.token = token ?? PlayedFile.inventToken(isApple: service == .apns, world)
        secret = Secp256k1KeyPair.generate(world).secret
        (device, origin) = (Secret([]), Secret([]))
        do throws(DeviceError) {
            keep(try StatusDevice(Self.setup(secret, servers, topic)))
            var origin = try StatusOrigin(key: secret)
            // Whoever sends from the command line has asked for it.
            origin.isSending = true
            keep(origin)
        } catch { throw CommandFailure(.usage, error.sentence) }
    }

    // MARK: The member

    var key: Secp256k1KeyPair {
        get throws(CommandFailure) {
            do { return try Secp256k1KeyPair(secret: secret) } catch {
                throw CommandFailure(.failed, "The file's key is none.")
            }
        }
    }

    /// The phone as the library has it.
    ///
    /// - Parameter isWanted: whether it is given its token; else it is told that there is none any more.
    /// - Parameter isToOpen: it is told neither, as in an app's extension.
    func phone(isWanted: Bool = true, isToOpen: Bool = false) throws(DeviceError) -> StatusDevice {
        var phone = try StatusDevice(Self.setup(secret, servers, topic), keeping: device)
        guard !isToOpen else { return phone }
        try phone.apply(StatusPush.StatusSettings())
        try phone.use(token: isWanted ? try deviceToken : nil)
        return phone
    }

    private static func setup(
        _ key: Secret, _ servers: [PublicPoint], _ topic: String
    ) throws(DeviceError) -> StatusSetup {
        var keys: [RelayKey] = []
        for server in servers { keys.append(try RelayKey(text: StatusKeyFile.publicText(server))) }
        return try StatusSetup(key: key, bundleID: topic.isEmpty ? nil : topic, servers: keys)
    }

    private var deviceToken: DeviceToken {
        get throws(DeviceError) { service == .apns ? try .apns(hex: token.word) : try .fcm(token.word) }
    }

    func sender() throws(DeviceError) -> StatusOrigin { try StatusOrigin(key: secret, keeping: origin) }

    mutating func keep(_ device: StatusDevice) { self.device = device.kept }
    mutating func keep(_ origin: StatusOrigin) { self.origin = origin.kept }

    // MARK: The file

    /// - Throws: `CommandFailure` that names the file.
    init(file: String) throws(CommandFailure) {
        self = try PlayedFile.read(file, limitBytes: Self.limitBytes, "member") { PlayedMember($0) }
    }

    private init?(_ members: [String: Secret]) {
        func text(_ name: String) -> String? {
            members[name].map { $0.reveal { String(decoding: $0, as: UTF8.self) } }
        }
        let points = text("servers")?.split(separator: " ").map { StatusKeyFile.point(String($0)) } ?? []
        guard let node = text("node"), let topic = text("topic"),
            let service = text("service").flatMap(DeviceToken.Service.init),
            let token = members["token"], let secret = members["key"]?.fromHex,
            let device = members["device"], let origin = members["origin"],
            !points.contains(nil)
        else { return nil }
        (self.node, self.topic, self.service) = (node, topic, service)
        (servers, self.token, self.secret) = (points.compactMap(\.self), token, secret)
        (self.device, self.origin) = (device, origin)
    }

    /// Writes the file, which its owner alone may read.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func write(_ file: String) throws(CommandFailure) {
        let kept = 6 * (device.count + origin.count + token.count)
        var json = JSONWriter(reserving: 64 << 10 + kept)
        json.beginObject()
        let words = [
            ("node", node), ("servers", servers.map { StatusKeyFile.publicText($0) }.joined(separator: " ")),
            ("service", service.rawValue), ("topic", topic)
        ]
        for (name, text) in words {
            json.key(name)
            json.string(text)
        }
        for (name, text) in [
            ("token", token), ("key", secret.hexDigits), ("device", device), ("origin", origin)
        ] {
            json.key(name)
            text.reveal { json.string(utf8: $0) }
        }
        json.endObject()
        try replaceFile(file, json.takeSecret())
    }
}
