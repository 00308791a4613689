import Foundation
import Primitives
import PushModel
import Testing
import WebClient
import WireFormats
@testable import ZulipPush
@testable import RelayProgram

/// One request with canaries in it, and what it is answered.
struct CanaryCall: Sendable {
    let name: String
    var listener = "public"
    var method = "POST"
    var path: String
    var headers: [(name: String, value: Secret)] = []
    var body: Secret?
    var statuses: ClosedRange<Int>

    /// The same, cut off in the middle of its body: always refused.
    var half: CanaryCall? {
        // Of these two a half may be whole enough.
        let robust = [ZulipPath.deactivate.rawValue, ZulipPath.transfer.rawValue]
        guard let body, body.count > 1, !robust.contains(path) else { return nil }
        var call = self
        call.body = body.reveal { Secret($0.prefix($0.count / 2)) }
        call.statuses = 400...499
        return call
    }
}

/// Two servers, a realm and two phones with a canary in each field, and every request of the protocol and of
/// the operator, with the right fields, with wrong ones, and with fields and paths that nobody has asked for.
struct CanaryCast: Sendable {
    var server: DemoServer
    /// It signs up and goes.
    let leaver: DemoServer
    let apple: DemoApp
    let google: DemoApp
    private(set) var canaries: [Canary] = []
    private let agent = CanaryCast.word("agent")
    private let newKey = CanaryCast.word("") + CanaryCast.word("") + CanaryCast.word("") + CanaryCast.word("")
    private let sealed = (0..<2).map { _ in Base64.text((0..<90).map { _ in UInt8.random(in: .min ... .max) })
    }
    private let keyID = String(UInt32.random(in: 1_000_000_000 ... .max))
    private let title = CanaryCast.word("title")
    private let stray = CanaryCast.word("stray")
    private let accountID = String(Int64.random(in: 1_000_000_000_000_000_000 ... .max))
    /// The same phone as ``google``, registered with an account id.
    private let accountBlob: String
    private let content = Base64.text((0..<90).map { _ in UInt8.random(in: .min ... .max) })

    static func word(_ prefix: String) -> String {
        prefix + Hex.encode((0..<8).map { _ in UInt8.random(in: .min ... .max) })
    }

    init(bouncerKey: String) throws {
        func server(_ agent: String) -> DemoServer {
            let mail = Self.word("mail") + "@" + Self.word("domain") + ".example.org"
            var server = DemoServer(Self.word("host") + ".example.org", mail: mail, version: agent)
            server.realm.ownerSecret = Self.word("owner")
            server.realm.host = Self.word("realm") + ".example.org"
            server.realm.url = "https://" + Self.word("url") + ".example.org"
            server.realm.name = Self.word("name")
            return server
        }
        self.server = server(agent)
        leaver = server(agent)
        apple = try DemoApp(.apns, bouncerKey)
        google = try DemoApp(.fcm, bouncerKey)
        let plain =
            #"{"token_kind":"fcm","token":"\#(google.token)","timestamp":\#(World.live.now().seconds)}"#
        accountBlob = Base64.text(
            try SealedBox.seal(
                Secret(plain.utf8), to: try Base64.decode(bouncerKey), ephemeral: .generate(.live)))
        for server in [self.server, leaver] { try plant(server) }
        for phone in [apple, google] {
            add("token id", phone.tokenID.text)
            canaries.append(Canary("token id as bytes", phone.tokenID.bytes))
            canaries.append(Canary("token id as number", Canary.numbers(phone.tokenID.bytes)))
            add("blob", phone.registration.sealed.reveal { String(decoding: $0, as: UTF8.self) })
        }
        canaries += try Canary.hex("token", apple.token)
        add("FCM token", google.token)
        canaries += try Canary.hex("new key", newKey)
        for text in sealed {
            add("ciphertext", text)
            canaries.append(Canary("ciphertext as bytes", try Base64.decode(text)))
        }
        add("push key id", keyID)
        add("account id", accountID)
        add("blob of the account form", accountBlob)
        add("content", content)
        canaries.append(Canary("content as bytes", try Base64.decode(content)))
        add("title", title)
        add("agent", agent)
        add("stray", stray)
        add("address", Self.forwarded)
    }

    private static let forwarded = "2001:db8:c0ff:ee00::beef"

    private mutating func add(_ name: String, _ text: String) { canaries.append(Canary(name, text)) }

    /// What the relay itself made up, and told one peer.
    mutating func learn(_ name: String, _ text: String) throws { canaries += try Canary.hex(name, text) }

    /// The secrets of the configuration's files.
    mutating func read(_ folder: String, public known: String) throws {
        let made = ["A1B2C3D4E5-F6G7H8I9J0.p8", "acme-fcm.json"].map { "state/sandbox/\($0)" }
        for file in made + ["bouncer.keys", "admin.token", "state/storage.keys"] {
            let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
            let words = text.replacing("\\n", with: " ").split { " \n\"".contains($0) }
            let secrets = words.map(String.init).filter { $0.utf8.count >= 40 && $0 != known }
            #expect(!secrets.isEmpty, "\(file)")
            for secret in secrets { canaries.append(Canary("secret of \(file)", secret)) }
        }
    }

    private mutating func plant(_ server: DemoServer) throws {
        add("host", server.host)
        add("mail", server.mail)
        add("name", server.realm.name)
        add("realm host", server.realm.host)
        add("realm URL", server.realm.url)
        add("owner secret", server.realm.ownerSecret)
        canaries += try Canary.hex("organisation", server.origin.id)
        canaries += try Canary.hex("key", text(server.key))
        canaries += try Canary.hex("realm", server.realm.uuid)
    }

    // MARK: Requests

    private var strays: [(name: String, value: Secret)] {
        [
            ("X-Forwarded-For", Secret(Self.forwarded.utf8)), ("Cookie", Secret("sid=\(stray)".utf8)),
            ("X-\(stray)", Secret(stray.utf8)), ("Referer", Secret("https://\(stray).example.org/".utf8))
        ]
    }

    /// From the sign-up to the last push.
    func life() throws -> [CanaryCall] {
        let origin = server.origin
        let turned = form(
            .signUp,
            [
                ("zulip_org_id", origin.id), ("zulip_org_key", newKey), ("hostname", server.host),
                ("contact_email", server.mail), ("new_org_key", text(server.key)), (stray, stray)
            ])
        return [
            call("sign-up", origin.signUp(hostname: server.host, mail: server.mail)),
            call("analytics", with(origin.analyticsStatus(), "POST", .analytics, analytics)),
            call("status", origin.analyticsStatus()),
            call("register at Apple", origin.register(apple.registration, realm: server.realm.uuid)),
            call("register at Google", origin.register(google.registration, realm: server.realm.uuid)),
            call("notify", with(origin.analyticsStatus(), "POST", .notify, Secret(notify.utf8))),
            call(
                "register with an account id",
                with(origin.analyticsStatus(), "POST", .register, accountRegistration)),
            call(
                "notify by number", with(origin.analyticsStatus(), "POST", .notify, Secret(byNumber.utf8))),
            call(
                "new key",
                origin.signUp(hostname: server.host, mail: server.mail, newKey: Secret(newKey.utf8))),
            turned,
            // Its use ends the other key, which is shown as a wrong one later.
            call("status with the first key again", origin.analyticsStatus()),
            form(.transfer, [("hostname", server.host), (stray, stray)]),
            call("leaver's sign-up", leaver.origin.signUp(hostname: leaver.host, mail: leaver.mail)),
            call("leaver's analytics", leaver.origin.analytics(realms: [leaver.realm]))
        ]
    }

    /// What is refused, each for another reason.
    func wrong() -> [CanaryCall] {
        let paths = [
            "/api/v1/remotes/\(stray)", "/\(stray)", "/..%2F\(stray)?\(stray)=\(stray)",
            "/api/v1/remotes/push/e2ee/notify?api_key=\(text(server.key))",
            "/api/v1/remotes/push/\(apple.token)"
        ]
        let credentials = [
            "Basic " + Base64.text(Array("\(server.origin.id):\(newKey)".utf8)),
            "Basic " + Base64.text(Array("\(leaver.realm.uuid):\(newKey)".utf8)),
            "Basic " + Base64.text(Array("\(server.mail):\(newKey)".utf8)), "Basic \(stray)=",
            "Bearer \(newKey)", stray
        ]
        let notifyPath = ZulipPath.notify.rawValue
        return paths.map { refused("path", path: $0, body: notify) }
            + paths.map { refused("method", method: stray.uppercased(), path: $0) }
            + credentials.map { refused("credentials", path: notifyPath, authorization: $0, body: notify) }
            + ["{\"\(stray)\":", "[\"\(stray)\"]", "\u{FFFE}\(stray)%", "{\"realm_uuid\":\"\(stray)\"}"].map {
                refused("body", path: notifyPath, authorization: text(authorization), body: $0)
            }
            + [ZulipPath.legacyRegister, .legacyNotify, .legacyTest].map {
                refused(
                    "legacy", path: $0.rawValue, authorization: text(authorization),
                    body: "token=\(apple.token)&user_id=\(stray)")
            } + [
                form(
                    .verifyChallenge, [("hostname", server.host), ("access_token", stray)],
                    statuses: 400...499),
                form(.transfer, [("hostname", stray + ".example.org")], statuses: 400...499),
                form(
                    .signUp,
                    [
                        ("zulip_org_id", server.origin.id), ("zulip_org_key", newKey),
                        ("hostname", stray + "/" + server.host), ("contact_email", server.mail)
                    ], statuses: 400...499)
            ]
    }

    /// What rows of the plaintext protocol make a server ask: tokens and text in clear.
    func leftovers() -> [CanaryCall] {
        let tokens = #""android_devices":["\#(google.token)"],"apple_devices":["\#(apple.token)"]"#
        let shown = #""apns_payload":{"alert":{"body":"\#(stray)"}},"user_uuid":"\#(stray)""#
        return [
            (ZulipPath.legacyNotify, "{\(tokens),\(shown)}"),
            (.legacyUnregister, "token=\(apple.token)&user_id=\(stray)"),
            (.legacyUnregisterAll, "user_uuid=\(stray)")
        ].map { path, body in
            var call = refused(
                "legacy", path: path.rawValue, authorization: text(authorization), body: body)
            call.statuses = 200...200
            return call
        }
    }

    /// Heads that no HTTP server takes, as bytes.
    func broken() -> [[UInt8]] {
        [
            "GET /\(stray) HTTP/9.9\r\nHost: \(stray)\r\n\r\n", "\(stray)\r\n\r\n",
            "POST /\(stray) HTTP/1.1\r\n\(stray)\r\n\r\n",
            "POST /\(stray) HTTP/1.1\r\nHost: \(stray)\r\nHost: \(server.host)\r\nContent-Length: 3\r\n\r\nabc",
            "POST /\(stray) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \(stray)\r\n\r\n",
            "POST /\(stray) HTTP/1.1\r\nHost: a\r\nExpect: \(stray)\r\nContent-Length: 3\r\n\r\n"
        ].map { Array($0.utf8) }
    }

    private func operatorHeaders(_ token: String) -> [(name: String, value: Secret)] {
        [
            ("Authorization", Secret("Bearer \(token)".utf8)),
            ("Content-Type", Secret("application/json".utf8))
        ] + strays
    }

    /// The operator's calls.
    func operation(token: String) -> [CanaryCall] {
        func admin(_ path: String, _ body: String, _ statuses: ClosedRange<Int> = 200...200) -> CanaryCall {
            CanaryCall(
                name: "operator", listener: "admin", path: path,
                headers: operatorHeaders(token), body: Secret(body.utf8), statuses: statuses)
        }
        func get(_ path: String, _ token: String, _ statuses: ClosedRange<Int>) -> CanaryCall {
            CanaryCall(
                name: "operator", listener: "admin", method: "GET", path: path,
                headers: operatorHeaders(token), statuses: statuses)
        }
        return [
            admin(OriginsDesk.suspendPath, "{\"id\":\"\(leaver.origin.id)\"}"),
            admin(OriginsDesk.resumePath, "{\"id\":\"\(leaver.origin.id)\",\"\(stray)\":1}"),
            admin(OriginsDesk.invitePath, "{\"host\":\"\(stray)/\"}", 400...499),
            admin(OriginsDesk.invitePath, "{\"host\":\"\(stray).example.org\"}"),
            admin(
                OriginsDesk.invitePath, "{\"instance\":\"\(stray)\",\"host\":\"a.example.org\"}", 400...499),
            admin(OriginsDesk.suspendPath, "{\"id\":\"\(stray)", 400...499),
            get(OriginsDesk.listPath, token, 200...200),
            get("\(OriginsDesk.listPath)?after=\(stray)&instance=\(stray)", token, 400...499),
            get(OriginsDesk.listPath, stray, 401...401), get("/\(stray)", token, 404...404)
        ]
    }

    func invitations(token: String) -> [CanaryCall] {
        [server, leaver].map {
            CanaryCall(
                name: "invitation", listener: "admin", path: OriginsDesk.invitePath,
                headers: operatorHeaders(token), body: Secret("{\"host\":\"\($0.host)\"}".utf8),
                statuses: 200...200)
        }
    }

    func leave() -> CanaryCall { call("leaving", leaver.origin.deactivate()) }

    // MARK: Parts

    private func text(_ secret: Secret) -> String { secret.reveal { String(decoding: $0, as: UTF8.self) } }

    private var authorization: Secret {
        server.origin.analyticsStatus().headers.first { $0.name == "Authorization" }?.value ?? Secret([])
    }

    private func call(_ name: String, _ call: HTTPCall) -> CanaryCall {
        CanaryCall(
            name: name, method: call.method, path: call.url, headers: call.headers + strays,
            body: call.method == "GET" ? nil : call.body, statuses: 200...200)
    }

    private func with(_ call: HTTPCall, _ method: String, _ path: ZulipPath, _ body: Secret) -> HTTPCall {
        HTTPCall(
            method: method, url: path.rawValue, headers: call.headers, body: body,
            answerLimitBytes: call.answerLimitBytes)
    }

    private func form(
        _ path: ZulipPath, _ fields: [(String, String)], statuses: ClosedRange<Int> = 200...200
    ) -> CanaryCall {
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        return CanaryCall(
            name: "form", path: path.rawValue, headers: strays, body: Secret(body), statuses: statuses)
    }

    private func refused(
        _ name: String, method: String = "POST", path: String, authorization: String? = nil,
        body: String? = nil
    ) -> CanaryCall {
        let credentials = authorization.map { [(name: "Authorization", value: Secret($0.utf8))] } ?? []
        let type = (name: "Content-Type", value: Secret("application/\(stray)".utf8))
        return CanaryCall(
            name: name, method: method, path: path, headers: credentials + [type] + strays,
            body: body.map { Secret($0.utf8) }, statuses: 400...499)
    }

    private var analytics: Secret {
        let realm = """
            [{"id":1,"host":"\(server.realm.host)","url":"\(server.realm.url)","name":"\(server.realm.name)",\
            "org_type":10,"date_created":1.5,"deactivated":false,"is_system_bot_realm":false,\
            "authentication_methods":{"\(stray)":true},"uuid":"\(server.realm.uuid)",\
            "uuid_owner_secret":"\(server.realm.ownerSecret)"}]
            """
        let rows = "[{\"id\":7,\"property\":\"\(stray)\",\"extra_data\":{\"\(title)\":\"\(stray)\"}}]"
        return Secret(
            Form(
                [
                    ("realm_counts", rows), ("installation_counts", rows), ("realmauditlog_rows", rows),
                    ("realms", realm), ("version", "\"\(stray)\""), ("merge_base", "\"\(stray)\""),
                    ("api_feature_level", "468"), (stray, stray)
                ].map { ($0.0, Array($0.1.utf8)) }
            ).encoded())
    }

    private var accountRegistration: Secret {
        Secret(
            Form(
                [
                    ("realm_uuid", server.realm.uuid), ("push_account_id", accountID),
                    ("encrypted_push_registration", accountBlob),
                    ("bouncer_public_key", google.registration.bouncerKey),
                    (stray, stray)
                ].map { ($0.0, Array($0.1.utf8)) }
            ).encoded())
    }

    /// To a device that nobody has.
    private var byNumber: String {
        """
        {"realm_uuid":"\(server.realm.uuid)","push_requests":[{"device_id":\(accountID),\
        "encrypted_content":"\(content)","\(stray)":"\(stray)"}]}
        """
    }

    /// Texts of the origin's own in `aps`, ciphertext that nobody can open, members that nobody knows.
    private var notify: String {
        func item(_ phone: DemoApp, _ how: String, _ sealed: String, _ more: String) -> String {
            """
            {"token_id":"\(phone.tokenID.text)",\(how),"\(stray)":["\(stray)"],\
            "payload":{"push_key_id":\(keyID),"encrypted_data":"\(sealed)"\(more),"\(stray)":{"a":"\(stray)"}}}
            """
        }
        let apple = item(
            apple, "\"http_headers\":{\"apns_priority\":10,\"apns_push_type\":\"alert\"}", sealed[0],
            ",\"aps\":{\"alert\":{\"title\":\"\(title)\"},\"mutable-content\":1}")
        let google = item(google, "\"fcm_priority\":\"high\"", sealed[1], "")
        return
            "{\"realm_uuid\":\"\(server.realm.uuid)\",\"push_requests\":[\(apple),\(google)],\"\(stray)\":0}"
    }
}

extension LocalCall {
    func ask(_ call: CanaryCall) async throws(Fault) -> Answer {
        try await ask(call.method, call.path, headers: call.headers, body: call.body)
    }
}
