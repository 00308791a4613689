import Foundation
import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// What PHP made with its own openssl and json_encode is read here, and what we make of the same is written
/// down for it: `make interop` compares.
@Suite("What PHP seals and opens", .timeLimit(.minutes(30)))
struct PHPPeerTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let from = environment["SEALBELL_PHP_FROM"]
    private static let into = environment["SEALBELL_PHP_INTO"]

    @Test(
        "Identities, subjects and forms of PHP's are ours, and ours are written for it",
        .enabled(if: from != nil && into != nil, "make interop names two files"))
    func both() throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: try #require(Self.from)))
        let made = try JSONValue.parse(Array(data), limitBytes: 8 << 20)
        let user = NextcloudUser(
            cloudID: "alice@cloud.example.org", key: try key(made, "user_private"))
        #expect(user.key.publicKey.pem == made["user_public"]?.string)
        for row in made["identities"]?.array ?? [] {
            let identity = AppPasswordIdentity(
                cloudID: try #require(row["cloud_id"]?.string), tokenID: try #require(row["token_id"]?.int64))
            #expect(identity.deviceIdentifier == row["identifier"]?.string)
            #expect(try identity.signature(by: user.key) == row["signature"]?.string)
        }
        let phone = try Phone(key: try key(made, "device_private"), server: user)
        let sealed = try #require(made["sealed"]?.array)
        #expect(sealed.count > 10)
        for row in sealed { try opens(row, phone.device) }
        let body = try #require(made["body"]?.string)
        #expect(try Form.parse(Array(body.utf8)).encoded() == Array(body.utf8))
        try write(
            phone,
            try sealed.enumerated().filter { $0.offset.isMultiple(of: 2) }.map {
                try notification($0.element)
            }, user)
    }

    private func opens(_ row: JSONValue, _ device: NextcloudRoutine) throws {
        let push = SealedSubject(
            subject: Secret(try #require(row["subject"]?.string).utf8),
            signature: Secret(try #require(row["signature"]?.string).utf8))
        let plain = try JSONValue.parse(Array(try #require(row["plaintext"]?.string).utf8))
        guard case .alert(let alert)? = try device.open(push) else {
            Issue.record("an alert")
            return
        }
        #expect(alert.id == plain["nid"]?.int64 && alert.subject == plain["subject"]?.string)
        #expect(alert.app == plain["app"]?.string && alert.objectID == plain["id"]?.string)
    }

    private func notification(_ row: JSONValue) throws -> NextcloudNotification {
        let row = try #require(row["notification"])
        return NextcloudNotification(
            id: try #require(row["nid"]?.int64), app: try #require(row["app"]?.string),
            subject: try #require(row["subject"]?.string), objectType: try #require(row["type"]?.string),
            objectID: try #require(row["id"]?.string))
    }

    private func key(_ made: JSONValue, _ member: String) throws -> RSAPrivateKey {
        try RSAPrivateKey(pem: Secret(try #require(made[member]?.string).utf8))
    }

    /// Calls of our device and our origin.
    private func write(
        _ phone: Phone, _ notifications: [NextcloudNotification], _ user: NextcloudUser
    ) throws {
        let now = Ends.now
        let audience = PushConditions(appPasswords: [41: AppPasswordState(lastUsedAt: now)])
            .everybody(of: [phone.row], now: now)
        var calls: [JSONValue] = []
        for (name, padding) in [("oaep", RSAPadding.oaepSHA1), ("pkcs1v15", .pkcs1v15)] {
            let origin = NextcloudOrigin(NextcloudOrigin.Settings(padding: padding))
            let entries = try notifications.flatMap {
                try origin.notify($0, to: audience, of: user).entries
            }
            calls.append(
                .object(["padding": .string(name), "body": .string(origin.call(entries).text)]))
        }
        let told: JSONObject = [
            "token": .string(Ends.token), "at_server": .string(phone.atServer.text),
            "at_proxy": .string(phone.atProxy.text), "calls": .array(calls)
        ]
        try Data(JSONValue.object(told).serialized())
            .write(to: URL(fileURLWithPath: try #require(Self.into)))
    }

    /// A phone that has registered at a server of ours.
    private struct Phone {
        var device: NextcloudRoutine
        let row: RegisteredDevice
        let atServer: HTTPCall
        let atProxy: HTTPCall

        init(key: RSAPrivateKey, server user: NextcloudUser) throws {
            device = NextcloudRoutine(account: try Ends().account, app: Ends.app, key: key)
            let capabilities = try NextcloudCapabilities(CloudDouble.capabilities.body)
            let token = try NextcloudPushToken(Secret(Ends.token.utf8))
            atServer = try Self.call(device.register(token, at: capabilities, now: Ends.now))
            let form = try atServer.form
            let verdict = try NextcloudOrigin().register(
                PushRegistration(
                    pushTokenHash: form.text("pushTokenHash"), devicePublicKey: form.text("devicePublicKey"),
                    proxyServer: form.text("proxyServer")),
                by: NextcloudSession(user: user, tokenID: 41), userAgent: "", rows: [])
            row = try #require(verdict.row)
            var random = SeededRandom(seed: 1)
            let answer = CallAnswer(status: 201, body: verdict.answer.body(.v2, .json))
            atProxy = try Self.call(device.settle(answer, now: Ends.now, using: &random))
        }

        private static func call(_ step: NextcloudRoutine.Step) throws -> HTTPCall {
            guard case .call(let call) = step else { throw NextcloudError(.malformedAnswer) }
            return call
        }
    }
}
