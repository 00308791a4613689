import PushModel
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Bad input over HTTP", .timeLimit(.minutes(30)))
struct BadInputTests {
    /// A relay with one server and one phone, and good requests to break.
    private struct Scene: Sendable {
        let relay: RunningRelay
        let watch: WatchedEngine.Watch
        let server: DemoServer
        let phone: DemoApp
        let notify: HTTPCall
        let register: HTTPCall
        let analytics: HTTPCall
        let signUp: HTTPCall

        init(_ relay: RunningRelay, _ watch: WatchedEngine.Watch) async throws {
            self.relay = relay
            self.watch = watch
            server = try await relay.server()
            phone = try await relay.phone(.apns, of: server)
            let calls = try server.notify(phone.notification(DemoApp.message(1, "m")), [phone])
            notify = try #require(calls.first)
            register = server.register(phone)
            analytics = server.origin.analytics(realms: [server.realm])
            signUp = server.origin.signUp(hostname: server.host, mail: server.mail)
            _ = watch.take()
        }

        /// Sends what must be refused: by the protocol's own error, with the store left as it is.
        @discardableResult
        func refuse(
            _ method: String, _ path: String, _ headers: [(name: String, value: Secret)], _ body: [UInt8],
            _ statuses: ClosedRange<Int> = 400...499, _ what: String
        ) async throws -> LocalCall.Answer {
            let answer = try await relay.door().ask(method, path, headers: headers, body: Secret(body))
            #expect(statuses.contains(answer.status), "\(what): \(answer.status) \(answer.text)")
            let json = try? JSONValue.parse(answer.body)
            // With a wrong method deployed relays send no code.
            let isCoded = json?["code"]?.string != nil || answer.status == 405
            #expect(json?["result"]?.string == "error" && isCoded, "\(what)")
            // A sign-up also reads which servers have its name.
            let written = watch.take().filter { !$0.hasPrefix("find") && !$0.hasPrefix("page") }
            #expect(written.isEmpty, "\(what): \(written)")
            return answer
        }

        @discardableResult
        func refuse(_ call: HTTPCall, _ body: [UInt8], _ what: String) async throws -> LocalCall.Answer {
            try await refuse(call.method, call.url, call.headers, body, 400...499, what)
        }

        func text(_ call: HTTPCall) -> String { call.body.reveal { String(decoding: $0, as: UTF8.self) } }
    }

    private func stage(_ body: @escaping (Scene) async throws -> Void) async throws {
        let watch = WatchedEngine.Watch()
        try await RelayStage.running(engine: { WatchedEngine($0, watch) }) { relay in
            let scene = try await Scene(relay, watch)
            try await body(scene)
            // It serves on, as if nothing had been.
            #expect(try await relay.ask(scene.notify).apple == 1)
            #expect(relay.stage.apns.counters.received == 1)
            #expect(!relay.stage.log.all.contains { $0.contains("\"level\":\"error\"") })
        }
    }

    @Test("A notify call cut at any length is refused")
    func truncatedJSON() async throws {
        try await stage { scene in
            let whole = scene.notify.body.reveal { Array($0) }
            for length in Array(stride(from: 0, to: whole.count, by: 11)) + [whole.count - 1] {
                let answer = try await scene.refuse(
                    scene.notify, Array(whole[..<length]), "cut at \(length)")
                #expect(answer.status == 400, "cut at \(length)")
            }
            let answer = try await scene.refuse(scene.notify, whole + Array("x".utf8), "something behind it")
            #expect(answer.status == 400)
        }
    }

    @Test("A form cut anywhere is refused or does what its whole fields say")
    func truncatedForms() async throws {
        try await stage { scene in
            let whole = scene.register.body.reveal { Array($0) }
            // Cut inside its last field: the key is then another one, or missing.
            let start = try #require(whole.firstRange(of: Array("&bouncer_public_key".utf8))).lowerBound
            for length in Array(stride(from: 0, to: start, by: 29))
                + stride(from: start, to: whole.count - 4, by: 3)
            {
                try await scene.refuse(scene.register, Array(whole[..<length]), "cut at \(length)")
            }
            let analytics = scene.analytics.body.reveal { Array($0) }
            let end = try #require(analytics.firstRange(of: Array("&version".utf8))).lowerBound
            let realms = try #require(analytics.firstRange(of: Array("&realms=".utf8))).upperBound
            for length in stride(from: realms, to: end, by: 17) {
                try await scene.refuse(scene.analytics, Array(analytics[..<length]), "cut at \(length)")
            }
        }
    }

    @Test("Wrong types, base64, ids and keys are refused, each once")
    func wrongValues() async throws {
        try await stage { scene in
            let notify = scene.text(scene.notify)
            let changes = [
                ("\"push_requests\":[", "\"push_requests\":{"),
                ("\"push_requests\":[", "\"push_requests\":[[],"),
                ("\"push_requests\":[", "\"push_requests\":[null,"), ("\"token_id\":\"", "\"token_id\":\"x"),
                ("\"token_id\":\"", "\"token_id\":\"99999999999999999999999"),
                ("\"apns_priority\":10", "\"apns_priority\":11"),
                ("\"apns_priority\":10", "\"apns_priority\":\"10\""),
                ("\"apns_push_type\":\"alert\"", "\"apns_push_type\":\"shout\""),
                ("\"push_key_id\":", "\"push_key_id\":-"), ("\"push_key_id\":", "\"push_key_id\":9999999999"),
                ("\"encrypted_data\":\"", "\"encrypted_data\":\"!!"),
                ("\"encrypted_data\":", "\"encrypted\":"),
                ("\"payload\":{", "\"payload\":[{"),
                ("\"realm_uuid\":\"", "\"realm_uuid\":\"x"), ("\"realm_uuid\":", "\"realm\":")
            ]
            for (old, new) in changes {
                #expect(notify.contains(old))
                try await scene.refuse(scene.notify, Array(notify.replacing(old, with: new).utf8), new)
            }
            let deep = String(repeating: "[", count: 20_000)
            try await scene.refuse(scene.notify, Array("{\"x\":\(deep)".utf8), "deep")
            let stranger = notify.replacing(
                scene.server.realm.uuid, with: "0ec3eedd-6233-4c5e-a000-b9942be3494e")
            try await scene.refuse(scene.notify, Array(stranger.utf8), "a realm of nobody")

            let register = scene.text(scene.register)
            for (old, new) in [
                ("realm_uuid=", "realm_uuid=x"), ("token_id=", "token_id=x"), ("token_id=", "token_id=1"),
                ("bouncer_public_key=", "bouncer_public_key=A"), ("realm_uuid=", "realm="),
                ("encrypted_push_registration=", "encrypted_push_registration=AAAA"),
                ("encrypted_push_registration=", "encrypted_push_registration=%"), ("&", "&&%zz&")
            ] {
                try await scene.refuse(scene.register, Array(register.replacing(old, with: new).utf8), new)
            }
        }
    }

    @Test("A box that does not open is refused alike, whatever is wrong in it")
    func boxes() async throws {
        try await stage { scene in
            var answers: Set<[UInt8]> = []
            let box = try Base64.decode(scene.phone.registration.sealed.reveal { Array($0) })
            var broken: [[UInt8]] = [[], Array(box.dropLast()), box + [0], Array(box.prefix(48))]
            for place in [0, 31, 32, 47, 48, box.count - 1] {
                var changed = box
                changed[place] ^= 1
                broken.append(changed)
            }
            for bytes in broken {
                let text = Form([
                    ("realm_uuid", Array(scene.server.realm.uuid.utf8)),
                    ("token_id", Array(scene.phone.tokenID.text.utf8)),
                    ("encrypted_push_registration", Array(Base64.text(bytes).utf8)),
                    ("bouncer_public_key", Array(scene.relay.bouncerKey.utf8))
                ]).encoded()
                let answer = try await scene.refuse(
                    "POST", scene.register.url, scene.register.headers, text, 400...400,
                    "\(bytes.count) bytes")
                answers.insert(answer.body)
            }
            #expect(answers.count == 1)
        }
    }

    @Test("Ten thousand items, and more bytes than a call may have, are refused before any look-up")
    func oversize() async throws {
        try await stage { scene in
            let item = try #require(scene.text(scene.notify).split(separator: "[", maxSplits: 1).last)
                .dropLast(2)
            for count in [1001, 10_000] where count * item.utf8.count < 4 << 20 || count == 1001 {
                let items = Array(repeating: String(item), count: count).joined(separator: ",")
                let body = "{\"realm_uuid\":\"\(scene.server.realm.uuid)\",\"push_requests\":[\(items)]}"
                try await scene.refuse(
                    "POST", scene.notify.url, scene.notify.headers, Array(body.utf8), 400...400,
                    "\(count) items")
            }
            let small = Array(repeating: "0", count: 10_000).joined(separator: ",")
            try await scene.refuse(
                scene.notify, Array("{\"push_requests\":[\(small)]}".utf8), "10,000 numbers")
            let large = [UInt8](repeating: 0x20, count: (4 << 20) + 1)
            try await scene.refuse(
                "POST", scene.notify.url, scene.notify.headers, large, 400...400, "4 MiB and one")
            let form = [UInt8](repeating: 0x61, count: (64 << 10) + 1)
            for call in [scene.register, scene.signUp] {
                try await scene.refuse("POST", call.url, call.headers, form, 400...400, "64 KiB and one")
            }
            let fields = (0..<100).map { "a\($0)=1" }.joined(separator: "&")
            try await scene.refuse(scene.register, Array(fields.utf8), "100 fields")
        }
    }

    @Test("Every path refuses other methods, missing and wrong credentials; legacy calls have one refusal")
    func doors() async throws {
        try await stage { scene in
            func basic(_ text: String) -> [(name: String, value: Secret)] {
                [("Authorization", Secret("Basic \(Base64.text(Array(text.utf8)))".utf8))]
            }
            let good = scene.notify.headers.filter { $0.name == "Authorization" }
            for path in ZulipPath.allCases {
                for method in ["PUT", "DELETE", "PATCH", "OPTIONS", path.method == "GET" ? "POST" : "GET"] {
                    try await scene.refuse(method, path.rawValue, good, [], 405...405, "\(method) \(path)")
                }
                guard path.isAuthenticated else { continue }
                for headers in [
                    [], basic("nobody:key"), basic("\(scene.server.origin.id):wrong"), basic("no-colon"),
                    basic("ada@acme.example:key"),
                    [("Authorization", Secret("Bearer x".utf8))], [("Authorization", Secret("Basic !".utf8))],
                    [("Authorization", Secret([0x42, 0xFF]))], good + good
                ] {
                    try await scene.refuse(path.method, path.rawValue, headers, [], 400...401, "\(path)")
                }
            }
            var legacy: Set<[UInt8]> = []
            for path in [ZulipPath.legacyRegister, .legacyTest] {
                let body = Array("{\"user_id\":1}".utf8)
                legacy.insert(
                    try await scene.refuse("POST", path.rawValue, good, body, 400...400, "\(path)").body)
            }
            #expect(legacy.count == 1)
            for path in ["/api/v1/remotes/", "/api/v1/remotes/push/e2ee/notify/", "/api/v1/remotes/%2e%2e/x"]
            {
                try await scene.refuse("POST", path, good, [], 404...404, path)
            }
        }
    }

    @Test("A registration that is replayed changes nothing but its own row's age, and is counted")
    func replay() async throws {
        try await stage { scene in
            for _ in 0..<3 {
                #expect(try await scene.relay.ask(scene.register).status == 200)
                #expect(
                    scene.watch.take().filter { $0.hasPrefix("accept") } == ["accept 0 pushes, 2 changes"])
            }
            // Another server shows the same box for a realm that is not its own.
            let other = try await scene.relay.server("other.acme.example")
            _ = scene.watch.take()
            let call = other.origin.register(scene.phone.registration, realm: scene.server.realm.uuid)
            try await scene.refuse(call, call.body.reveal { Array($0) }, "a box of another server")
        }
    }

    @Test("Sign-up refuses names, mails, ids and keys that are none, and keys of others")
    func signUps() async throws {
        try await stage { scene in
            let text = scene.text(scene.signUp)
            for (old, new) in [
                ("hostname=", "hostname=%20"), ("hostname=", "hostname=a%2F"), ("hostname=", "hostname=a%40"),
                ("contact_email=", "contact_email=%40"), ("zulip_org_id=", "zulip_org_id=x"),
                ("zulip_org_key=", "zulip_org_key=x"), ("zulip_org_id=", "org=")
            ] {
                #expect(text.contains(old))
                try await scene.refuse(scene.signUp, Array(text.replacing(old, with: new).utf8), new)
            }
            // The id of one server with the key of another.
            let other = DemoServer("other.acme.example")
            let stolen = ZulipOrigin(id: scene.server.origin.id, key: other.key, version: "12.0")
            let call = stolen.signUp(hostname: scene.server.host, mail: scene.server.mail)
            try await scene.refuse(call, call.body.reveal { Array($0) }, "another's id")
            let taken = other.origin.signUp(hostname: scene.server.host, mail: scene.server.mail)
            try await scene.refuse(taken, taken.body.reveal { Array($0) }, "another's name")
        }
    }
}
