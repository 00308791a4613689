import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// A Nextcloud server that exists to make load: users with a key each, their devices, and the requests of
/// both (docs/conformance/nextcloud.md), in the kit's own forms. Its ciphertexts are of random bytes: a relay
/// opens none, and what would be encrypted to nobody costs no time.
///
/// A signature takes 0.6 ms of a core, so a caller asks for some 1,500 pushes a second at most.
struct NextcloudLoadOrigin: LoadOrigin {
    private(set) var devices: [LoadDevice] = []
    private let host: String
    private let world: World
    private let instance: String
    private let subscriptionKey: String?
    private var users: [NextcloudUser] = []
    private var registered: Int64 = 0
    private let count: Int
    /// So that no other server of a trial has a device of the same identifier.
    private let cloud: String

    /// Several, so that a call has pushes of several origins; few, because a key takes up to half a second.
    private static let count = 3

    /// - Parameters:
    ///   - keys: of the users; none: some are made when there is a device.
    ///   - subscriptionKey: what its notifications calls show; `nil`: nothing.
    init(
        host: String, world: World, instance: String = NextcloudLoad.instance, keys: [RSAPrivateKey] = [],
        subscriptionKey: String? = nil
    ) {
        self.host = host
        self.world = world
        self.instance = instance
        self.subscriptionKey = subscriptionKey
        count = keys.isEmpty ? Self.count : keys.count
        cloud = "\(Hex.encode(world.randomBytes(8))).example.org"
        for key in keys { add(key) }
    }

    private mutating func add(_ key: RSAPrivateKey) {
        users.append(NextcloudUser(cloudID: "user\(users.count)@\(cloud)", key: key))
    }

    /// Nothing: a relay hears of a server with its first notification.
    func signUp() -> [PreparedRequests] { [] }

    /// Makes devices, each of one of the users, and the requests by which their apps register them.
    ///
    /// - Throws: `RSAError` when the library yields no key.
    mutating func addDevices(_ count: Int, _ kind: PushService) throws -> PreparedRequests {
        try add((0..<count).map { _ in .make(kind, world) })
    }

    /// The same for devices that are made already, whose numbers tell their users.
    mutating func add(_ made: [LoadDevice]) throws -> PreparedRequests {
        var prepared = PreparedRequests()
        for device in made {
            let request = try register(device)
            prepared.add(head: request.head, body: request.body)
        }
        return prepared
    }

    /// The same for one.
    mutating func register(_ made: LoadDevice) throws -> RequestText {
        while users.count < count { add(try .generate()) }
        registered += 1
        var device = made
        let user = user(of: device)
        // Each has an app password of its own.
        let identity = user.identity(tokenID: registered)
        device.name = identity.deviceIdentifier
        devices.append(device)
        return form(
            "devices", agent: "Mozilla/5.0 (\(device.kind == .apns ? "iOS" : "Android")) Load/1.0",
            [
                ("pushToken", Secret(device.token.utf8)), ("deviceIdentifier", Secret(device.name.utf8)),
                ("deviceIdentifierSignature", Secret(try identity.signature(by: user.key).utf8)),
                ("userPublicKey", Secret(user.key.publicKey.pem.utf8))
            ])
    }

    /// Lets go of the devices' tokens; the relay keeps them.
    mutating func forgetDevices() { devices = [] }

    /// One notifications call for these devices, each with a ciphertext and a signature that exist once: by
    /// them the relay tells a repeat.
    ///
    /// - Parameter contentBytes: does not matter, because any ciphertext is one block of RSA.
    /// - Throws: `RSAError` when the library does not sign.
    func notify(_ targets: some Collection<LoadDevice>, contentBytes: Int) throws -> LoadCall {
        try notify(targets, as: nil)
    }

    /// The same.
    ///
    /// - Parameter kind: of each notification; `nil`: a message, or for some devices a withdrawal. Both are
    ///   owed for a day, where a call is for a minute alone.
    func notify(
        _ targets: some Collection<LoadDevice>, as kind: NextcloudPushKind?
    ) throws -> LoadCall {
        var fields: [(String, Secret)] = []
        var marks: [String] = []
        for (place, device) in targets.enumerated() {
            let block = world.randomBytes(256)
            let signature = try block.withUnsafeBytes(user(of: device).key.sign)
            let subject = Base64.text(block)
            marks.append(NextcloudLoad.mark(ofSubject: subject))
            let isMessage = device.number / UInt32(count) % 4 > 0
            let entry = SealedEntry(
                row(device),
                SealedSubject(subject: Secret(subject.utf8), signature: Secret(Base64.encode(signature))),
                kind ?? (isMessage ? .message : .withdrawal))
            fields.append(("notifications[\(place)]", entry.json))
        }
        let field = subscriptionKey.map { [("X-Nextcloud-Subscription-Key", Secret($0.utf8))] } ?? []
        let request = form("notifications", agent: "Nextcloud Server Crawler", fields, field)
        return (request.head, request.body, marks)
    }

    /// Whose device it is: its number tells.
    private func user(of device: LoadDevice) -> NextcloudUser { users[Int(device.number) % count] }

    /// What the server has of a device; nothing is encrypted to its key.
    private func row(_ device: LoadDevice) -> RegisteredDevice {
        RegisteredDevice(
            tokenID: 0, deviceIdentifier: device.name, devicePublicKey: "",
            pushTokenHash: String(decoding: TokenHash(of: Secret(device.token.utf8)).hex, as: UTF8.self),
            proxyServer: "", group: .talk)
    }

    private func form(
        _ endpoint: String, agent: String, _ fields: [(String, Secret)], _ more: [(String, Secret)] = []
    ) -> RequestText {
        let headers = [
            ("User-Agent", Secret(agent.utf8)),
            ("Content-Type", Secret("application/x-www-form-urlencoded".utf8))
        ]
        let body = Form(fields.map { ($0.0, $0.1.reveal { Array($0) }) }).encoded()
        return requestText(
            "POST", "/\(instance)/\(endpoint)", host: host, headers + more, Secret(body))
    }
}

extension NextcloudPushKind {
    /// Of Talk: a message, and a call that rings.
    static let message = ofTalk("chat")
    static let call = ofTalk("call")

    private static func ofTalk(_ type: String) -> NextcloudPushKind {
        NextcloudPushKind(
            NextcloudNotification(id: 1, app: "spreed", subject: "", objectType: type, objectID: ""))
    }
}
