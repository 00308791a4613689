import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// A member of Status's network that the command line plays, phone and sender in one, and what it keeps
/// between two commands: a file of its own, because it holds the account's key.
struct PlayedMember: KitOwner {
    /// A sender keeps what it has learned of people.
    static let limitBytes = 4 << 20
    static let noun = "member"

    let file: HeldFile
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
    var kept: Secret?
    private var origin: Secret

    /// A key and an installation that are made anew.
    init(
        _ service: DeviceToken.Service, node: String, servers: [PublicPoint], topic: String,
        token: Secret?, _ file: HeldFile, _ world: World
    ) throws(CommandFailure) {
        (self.service, self.node, self.servers, self.topic) = (service, node, servers, topic)
        self.token = token ?? world.inventToken(isApple: service == .apns)
        self.file = file
        secret = Secp256k1KeyPair.generate(world).secret
        (kept, origin) = try orFail(.usage) { [secret] () throws(DeviceError) in
            var origin = try StatusOrigin(key: secret)
            // Whoever sends from the command line has asked for it.
            origin.isSending = true
            return (try StatusDevice(Self.setup(secret, servers, topic)).kept, origin.kept)
        }
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
        var phone = try StatusDevice(Self.setup(secret, servers, topic), keeping: kept)
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

    /// Writes the file with what the sender keeps now.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func keepOrigin(_ origin: Secret) throws(CommandFailure) {
        var member = self
        member.origin = origin
        try member.write()
    }

    // MARK: The file

    init?(_ row: KitObject, _ file: HeldFile) {
        let points = row.text("servers")?.split(separator: " ").map { StatusKeyFile.point(String($0)) } ?? []
        guard let node = row.text("node"), let topic = row.text("topic"),
            let service: DeviceToken.Service = row.word("service"),
            let token = row["token"], let secret = row["key"]?.fromHex,
            let kept = row["device"], let origin = row["origin"], !points.contains(nil)
        else { return nil }
        (self.node, self.topic, self.service, self.file) = (node, topic, service, file)
        (servers, self.token, self.secret) = (points.compactMap(\.self), token, secret)
        (self.kept, self.origin) = (kept, origin)
    }

    var row: KitObject {
        [
            "node": node, "servers": servers.map { StatusKeyFile.publicText($0) }.joined(separator: " "),
            "service": service.rawValue, "topic": topic, "token": token, "key": secret.hexDigits,
            "device": kept, "origin": origin
        ]
    }
}
