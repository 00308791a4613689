import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// Users, their devices and a batch for them.
struct NextcloudMaterial {
    let keys: [RSAPrivateKey]
    /// What each key has signed.
    let signed: [(subject: [UInt8], signature: [UInt8])]
    /// A notifications call as a deployed server writes it.
    let body: [UInt8]
    let entries: Int
    private let registrations: [[UInt8]]

    /// - Parameter users: of whom each has one device, and an equal part of the entries.
    init(users: Int, entries: Int, world: World) throws {
        var keys: [RSAPrivateKey] = []
        for _ in 0..<users { keys.append(try RSAPrivateKey.generate()) }
        var (signed, texts, registrations) = (
            [(subject: [UInt8], signature: [UInt8])](), [String](), [[UInt8]]()
        )
        for number in 0..<entries {
            let key = keys[number % users]
            let subject = world.randomBytes(RSAForm.blockBytes)
            let signature = try withBytes(subject) { (bytes) throws(RSAError) in try key.sign(bytes) }
            signed.append((subject, signature))
            texts.append(Self.entry(Self.preimage(number % users), subject, signature))
        }
        for (number, key) in keys.enumerated() {
            registrations.append(try Self.registration(Self.preimage(number), key))
        }
        self.keys = keys
        self.signed = signed
        self.entries = entries
        self.registrations = registrations
        let fields = texts.enumerated().map { ("notifications[\($0)]", Array($1.utf8)) }
        body = Form(fields).encoded()
    }

    private static func preimage(_ user: Int) -> [UInt8] { Array(#"["user\#(user)@cloud.example",1]"#.utf8) }

    private static func identifier(_ preimage: [UInt8]) -> String {
        let identifier = withBytes(preimage) { DeviceIdentifier(hashing: $0) }
        return String(decoding: identifier.base64, as: UTF8.self)
    }

    private static let token = "fcm:token"

    private static func entry(_ preimage: [UInt8], _ subject: [UInt8], _ signature: [UInt8]) -> String {
        func slashed(_ text: String) -> String { text.replacing("/", with: #"\/"#) }
        let hash = String(decoding: TokenHash(of: Secret(token.utf8)).hex, as: UTF8.self)
        return #"{"deviceIdentifier":"\#(slashed(identifier(preimage)))","pushTokenHash":"\#(hash)","#
            + #""subject":"\#(slashed(Base64.text(subject)))","#
            + #""signature":"\#(slashed(Base64.text(signature)))","priority":"high","type":"alert"}"#
    }

    private static func registration(_ preimage: [UInt8], _ key: RSAPrivateKey) throws -> [UInt8] {
        let signature = try withBytes(preimage) { (bytes) throws(RSAError) in try key.sign(bytes) }
        return Form([
            ("pushToken", Array(token.utf8)), ("deviceIdentifier", Array(identifier(preimage).utf8)),
            ("deviceIdentifierSignature", Base64.encode(signature)),
            ("userPublicKey", Array(key.publicKey.pem.utf8))
        ]).encoded()
    }

    /// A relay that knows no key yet, over a registry that has all devices.
    func relay(_ registry: HeldRecords, _ world: World) throws -> NextcloudRelay {
        guard let app = ConfiguredName("acme-talk") else { throw BenchError(.badPlan) }
        return try NextcloudRelay(
            instance: app, apps: NextcloudApps([NextcloudApp(name: app, bundle: nil, hasFCM: true)]),
            registry: registry, web: nil, world: world)
    }

    func register(at relay: NextcloudRelay, _ registry: HeldRecords) async throws {
        for body in registrations {
            let verdict = try await relay.receive(Self.inbound("/devices", body))
            _ = try await registry.apply(verdict.changes)
        }
    }

    static func inbound(_ path: String, _ body: [UInt8]) throws -> NextcloudInbound {
        try withBytes(body) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: path, body: bytes)
        }
    }
}
