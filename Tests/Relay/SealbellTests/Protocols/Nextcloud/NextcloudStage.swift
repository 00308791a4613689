import Crypto
import NextcloudPush
import PushModel
import RSAKeys
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

extension RelayStage {
    /// One instance with an app for Talk and one for Files, as most tests have it.
    ///
    /// - Parameter more: further keys of the instance, each with a comma and a blank before it.
    static func nextcloud(_ more: String = "", bare: Bool = false) -> String {
        nextcloudApps
            + "  cloud: { protocol: nextcloud, apps: [talk, files], clients: { nextcloud-talk: talk, "
            + "nextcloud-ios: files, nextcloud-android: files }, bare_path: \(bare)\(more) }\n"
    }

    /// The head of such a configuration, whose listener serves the instance `cloud`.
    static let nextcloudApps = """
        listeners:
          public: { bind: "127.0.0.1:0", serves: [cloud], trusted_proxies: [127.0.0.1] }
          admin: { bind: "127.0.0.1:0" }
        log: { level: debug }
        apps:
          talk:
            apns:
              { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.example.talk],
                voip: true }
            fcm: { service_account: fcm.json }
          files:
            apns:
              { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.example.files] }
            fcm: { service_account: fcm.json }
        instances:

        """
}

/// A user's key and an app password, as far as a relay sees them: by hand, for tests of what no device of
/// ours would send.
struct HandmadeDevice: Sendable {
    let user: RSAPrivateKey
    /// As a server makes it of the user and the number of an app password.
    let preimage: String
    let identifier: String
    let signature: String

    /// - Parameter user: whose key it is; an attacker's is as good as any.
    init(_ preimage: String = #"["ada@cloud.example.org",41]"#, by user: RSAPrivateKey? = nil) throws {
        let user = try user ?? .generate()
        let bytes = Array(preimage.utf8)
        self.user = user
        self.preimage = preimage
        identifier = Base64.text(Array(SHA512.hash(data: bytes)))
        signature = Base64.text(try bytes.withUnsafeBytes { try user.sign($0) })
    }

    /// A body of `/devices`.
    func form(_ token: String? = nil, cloudID: String? = nil) -> Secret {
        var fields = [
            ("deviceIdentifier", identifier), ("deviceIdentifierSignature", signature),
            ("userPublicKey", user.publicKey.pem)
        ]
        if let token { fields.append(("pushToken", token)) }
        if let cloudID { fields.append(("cloudId", cloudID)) }
        return Secret(Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded())
    }

    /// One entry of `/notifications`, with a ciphertext of random bytes.
    func entry(_ token: String, subject: [UInt8]? = nil, priority: String = "high", type: String = "alert")
        throws -> String
    {
        let subject = subject ?? (0..<256).map { _ in UInt8.random(in: .min ... .max) }
        let signature = try subject.withUnsafeBytes { try user.sign($0) }
        return Self.entry(
            identifier, hash: Self.hash(token), subject: Base64.text(subject),
            signature: Base64.text(signature), priority: priority, type: type)
    }

    static func entry(
        _ identifier: String, hash: String, subject: String, signature: String, priority: String = "high",
        type: String = "alert"
    ) -> String {
        #"{"deviceIdentifier":"\#(identifier)","pushTokenHash":"\#(hash)","subject":"\#(subject)","#
            + #""signature":"\#(signature)","priority":"\#(priority)","type":"\#(type)"}"#
    }

    static func hash(_ token: String) -> String { Hex.encode(Array(SHA512.hash(data: Array(token.utf8)))) }

    /// A body of `/notifications`, as a server writes it.
    static func batch(_ entries: [String]) -> Secret {
        Secret(
            Form(entries.enumerated().map { ("notifications[\($0.offset)]", Array($0.element.utf8)) })
                .encoded())
    }

    static func token() -> String { Hex.encode((0..<32).map { _ in UInt8.random(in: .min ... .max) }) }
}

extension RunningRelay {
    static let formHeaders: [(name: String, value: Secret)] = [
        ("Content-Type", Secret("application/x-www-form-urlencoded".utf8))
    ]

    /// Posts a form to a path of the public door.
    func post(
        _ path: String, _ body: Secret, headers: [(name: String, value: Secret)] = [],
        agent: String = "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0 (Strict VoIP)", method: String = "POST"
    ) async throws -> LocalCall.Answer {
        try await door().ask(
            method, path,
            headers: Self.formHeaders + [("User-Agent", Secret(agent.utf8))] + headers, body: body)
    }
}

extension LocalCall.Answer {
    var json: JSONValue? { try? JSONValue.parse(body) }
    /// `failed` of a batch's answer.
    var failed: Int64? { json?["failed"]?.int64 }
    /// `unknown` of it.
    var unknown: [String]? { json?["unknown"]?.array?.compactMap(\.string) }
    /// It would be taken for an answer about entries by a server.
    var speaksOfEntries: Bool { json?["failed"] != nil && json?["unknown"] != nil }
}
