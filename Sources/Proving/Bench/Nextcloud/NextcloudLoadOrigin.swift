import Crypto
import PushModel
import RSAKeys
import WireFormats

/// A Nextcloud server that exists to make load: users with a key each, their devices, and the requests of
/// both (docs/conformance/nextcloud.md).
///
/// A signature takes 0.6 ms of a core, so a caller asks for some 1,500 pushes a second at most.
struct NextcloudLoadOrigin: LoadOrigin {
    private(set) var devices: [LoadDevice] = []
    private let host: String
    private let world: World
    private let instance: String
    private let subscriptionKey: String?
    private var keys: [RSAPrivateKey]
    private var registered = 0
    private let users: Int
    /// So that no other server of a trial has a device of the same identifier.
    private let cloud: String

    /// Several, so that a call has pushes of several origins; few, because a key takes up to half a second.
    private static let users = 3

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
        self.keys = keys
        self.subscriptionKey = subscriptionKey
        users = keys.isEmpty ? Self.users : keys.count
        cloud = "\(Hex.encode(world.randomBytes(8))).example.org"
    }

    /// Nothing: a relay hears of a server with its first notification.
    func signUp() -> [RequestBook] { [] }

    /// Makes devices, each of one of the users, and the requests by which their apps register them.
    ///
    /// - Throws: `RSAError` when the library yields no key.
    mutating func addDevices(_ count: Int, _ kind: PushService) throws -> RequestBook {
        try add((0..<count).map { _ in .make(kind, world) })
    }

    /// The same for devices that are made already, whose numbers tell their users.
    mutating func add(_ made: [LoadDevice]) throws -> RequestBook {
        while keys.count < users { keys.append(try .generate()) }
        var book = RequestBook()
        for var device in made {
            registered += 1
            let user = user(of: device)
            let key = keys[user]
            // What the identifier is the hash of: account and number of the app password.
            let account = Array(#"["user\#(user)@\#(cloud)",\#(registered)]"#.utf8)
            device.name = Base64.text(Array(SHA512.hash(data: account)))
            let fields = [
                ("pushToken", device.token), ("deviceIdentifier", device.name),
                ("deviceIdentifierSignature", Base64.text(try account.withUnsafeBytes(key.sign))),
                ("userPublicKey", key.publicKey.pem)
            ]
            let agent = "Mozilla/5.0 (\(device.kind == .apns ? "iOS" : "Android")) Load/1.0"
            let request = form("devices", agent: agent, fields)
            book.add(head: request.head, body: request.body)
            devices.append(device)
        }
        return book
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
    /// - Parameter type: of each notification; `nil`: an alert, or for some devices a withdrawal.
    func notify(_ targets: some Collection<LoadDevice>, as type: String?) throws -> LoadCall {
        var fields: [(String, String)] = []
        var marks: [String] = []
        for (place, device) in targets.enumerated() {
            let block = world.randomBytes(256)
            let subject = Base64.text(block)
            let signature = Base64.text(try block.withUnsafeBytes(keys[user(of: device)].sign))
            marks.append(NextcloudLoad.mark(ofSubject: subject))
            fields.append(("notifications[\(place)]", entry(device, type, subject, signature)))
        }
        let field = subscriptionKey.map { "X-Nextcloud-Subscription-Key: \($0)\r\n" } ?? ""
        let request = form("notifications", agent: "Nextcloud Server Crawler", fields, field)
        return (request.head, request.body, marks)
    }

    /// Whose device it is: its number tells.
    private func user(of device: LoadDevice) -> Int { Int(device.number) % users }

    /// As deployed servers write it, with slashes escaped. An alert, or for some devices a withdrawal: both
    /// are owed for a day, where a call is for a minute alone.
    private func entry(
        _ device: LoadDevice, _ type: String?, _ subject: String, _ signature: String
    ) -> String {
        let isAlert = device.number / UInt32(users) % 4 > 0
        let type = type ?? (isAlert ? "alert" : "background")
        let hash = Hex.encode(Array(SHA512.hash(data: Array(device.token.utf8))))
        let members: JSONObject = [
            "deviceIdentifier": .string(device.name), "pushTokenHash": .string(hash),
            "subject": .string(subject), "signature": .string(signature),
            "priority": .string(type == "background" ? "normal" : "high"), "type": .string(type)
        ]
        return String(decoding: JSONValue.object(members).serialized(), as: UTF8.self)
            .replacing("/", with: "\\/")
    }

    private func form(
        _ endpoint: String, agent: String, _ fields: [(String, String)], _ more: String = ""
    ) -> (head: [UInt8], body: [UInt8]) {
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        let head =
            "POST /\(instance)/\(endpoint) HTTP/1.1\r\nHost: \(host)\r\n"
            + "User-Agent: \(agent)\r\n\(more)"
            + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.count)\r\n\r\n"
        return (Array(head.utf8), body)
    }
}
