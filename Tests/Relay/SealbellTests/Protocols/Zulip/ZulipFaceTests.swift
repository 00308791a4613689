import Delivery
import DeliveryTesting
import HTTPIngress
import NIOCore
import Primitives
import PushModel
import PushTesting
import Synchronization
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// The Zulip relay behind HTTP: who is let in, how often, and what a relay says that cannot take more.
@Suite("Zulip over HTTP", .timeLimit(.minutes(30)))
struct ZulipFaceTests {
    private static let server = "1c29d774-2414-40cc-a7d1-4fb445cf9726"
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let key = String(repeating: "k", count: 64)

    private static func basic(_ id: String, _ key: String = ZulipFaceTests.key) -> (String, String) {
        ("Authorization", "Basic " + Base64.text(Array("\(id):\(key)".utf8)))
    }

    private static func json(_ outbound: HTTPOutbound) throws -> JSONValue {
        #expect(outbound.type == .json)
        return try JSONValue.parse(outbound.body)
    }

    private static func field(_ outbound: HTTPOutbound, _ name: String) -> String? {
        outbound.headers.first { "\($0.name)" == name }?.value
    }

    /// A face over a relay in memory, with short ways to ask it.
    private final class FaceRig: Sendable {
        let face: ZulipFace
        let clock = ManualClock()
        let pair: X25519KeyPair
        /// What the role counted.
        let seen: Notes
        let store: StoreSpy

        final class Notes: Sendable {
            private let list = Mutex<[NoteCode]>([])
            func add(_ note: NoteCode) { list.withLock { $0.append(note) } }
            var all: [NoteCode] { list.withLock { $0 } }
        }

        /// - Parameter rows: bound of the outbox.
        /// - Parameter hasApp: without one every push is dropped at once, and the answer waits for nobody.
        init(pushes: Int = 0, signUps: Int = 60, rows: Int = 100, hasApp: Bool = false) async throws {
            let world = clock.world(seed: 1)
            pair = try X25519KeyPair(privateKey: Secret((0..<32).map { UInt8($0) }))
            let name = configured("zulip-main")
            // It is never run: its lane takes pushes and sends none.
            let rig = try await DeliveryRig(
                name, outlets: hasApp ? [APNsOutlet(bundles: .any)] : [], override: ZulipRelay.override,
                rows: rows, world: world)
            store = rig.store
            var allowances = ZulipAllowances()
            allowances.signUps = Allowance("sign-ups", perMinute: signUps)
            let relay = ZulipRelay(
                instance: name, bouncerKeys: BouncerKeys([pair]), admission: .open, registry: rig.store,
                web: nil, allowances: allowances, world: world)
            let notes = Notes()
            face = ZulipFace(
                ZulipConversation(with: relay),
                Reception(
                    relay, of: name, intake: rig.delivery.intake, pushesPerMinute: pushes,
                    tolls: Tolls(world: world), note: { notes.add($0) }),
                events: EventLog(.silent, world))
            seen = notes
        }

        func ask(
            _ path: ZulipPath, _ body: [UInt8], by: [(String, String)] = [], method: HTTPVerb = .post,
            from client: UInt64 = 0
        ) async -> HTTPOutbound {
            await face.respond(
                to: HTTPInbound(
                    method, path: path.rawValue, headers: by, body: ByteBuffer(bytes: body),
                    client: ClientKey(client)))
        }

        func post(
            _ path: ZulipPath, _ fields: [(String, String)], by: [(String, String)] = [],
            from client: UInt64 = 0
        ) async -> HTTPOutbound {
            let form = Form(fields.map { ($0.0, Array($0.1.utf8)) })
            return await ask(path, form.encoded(), by: by, from: client)
        }

        func signUp(_ id: String, host: String, from client: UInt64 = 0) async -> HTTPOutbound {
            await post(
                .signUp,
                [
                    ("zulip_org_id", id), ("zulip_org_key", ZulipFaceTests.key), ("hostname", host),
                    ("contact_email", "admin@example.org")
                ], from: client)
        }

        func status(by: [(String, String)]) async -> HTTPOutbound {
            await ask(.analyticsStatus, [], by: by, method: .get)
        }

        /// Signs up the server with its realm and registers one device.
        func registered() async throws -> TokenID {
            try #require(await signUp(ZulipFaceTests.server, host: "chat.example.org").status == 200)
            let caller = [ZulipFaceTests.basic(ZulipFaceTests.server)]
            let realms = #"[{"uuid":"\#(ZulipFaceTests.realm)","id":1}]"#
            let analytics = await post(
                .analytics, [("realm_counts", "[]"), ("installation_counts", "[]"), ("realms", realms)],
                by: caller)
            try #require(analytics.status == 200)
            let token = Secret("ab12".utf8)
            let plain = RegistrationPlaintext(
                kind: .apns, token: token, timestamp: clock.now.seconds, appID: "org.example.app")
            let sealed = try RegistrationBox.seal(
                plain, to: pair.publicKey,
                ephemeral: try X25519KeyPair(privateKey: Secret((1..<33).map { UInt8($0) })))
            let id = TokenID(token: token)
            let answer = await post(
                .register,
                [
                    ("realm_uuid", ZulipFaceTests.realm), ("token_id", id.text),
                    ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                    ("bouncer_public_key", Base64.text(pair.publicKey))
                ], by: caller)
            try #require(answer.status == 200)
            return id
        }

        /// So many alerts to the device, each with a ciphertext of its own.
        func notify(
            _ id: TokenID, count: Int = 1, from first: Int = 0,
            by caller: (String, String) = ZulipFaceTests.basic(ZulipFaceTests.server)
        ) async -> HTTPOutbound {
            let items = (first..<first + count).map { number in
                let data = Base64.text(Array("message \(number)".utf8))
                return #"{"token_id":"\#(id.text)","http_headers":{"apns_priority":10,"apns_push_type":"#
                    + #""alert"},"payload":{"push_key_id":1,"encrypted_data":"\#(data)"}}"#
            }
            let body =
                #"{"realm_uuid":"\#(ZulipFaceTests.realm)","push_requests":["#
                + items.joined(separator: ",") + "]}"
            return await ask(.notify, Array(body.utf8), by: [caller])
        }
    }

    @Test("A server is let in by its id and key, given once, and nobody else is")
    func authentication() async throws {
        let bench = try await FaceRig()
        #expect(await bench.signUp(Self.server, host: "chat.example.org").status == 200)
        let right = Self.basic(Self.server)
        let allowed = await bench.status(by: [right])
        #expect(allowed.status == 200)
        #expect(try Self.json(allowed)["result"]?.string == "success")
        let refused: [[(String, String)]] = [
            [], [Self.basic(Self.other)], [Self.basic(Self.server, String(repeating: "x", count: 64))],
            [("Authorization", "Basic !")], [right, right], [right, Self.basic(Self.other)]
        ]
        for headers in refused {
            let answer = await bench.status(by: headers)
            #expect(answer.status == 401)
            #expect(Self.field(answer, "www-authenticate") == "Basic realm=\"zulip\"")
            #expect(try Self.json(answer)["code"]?.string == "UNAUTHORIZED")
        }
        let wrongMethod = await bench.ask(.analyticsStatus, [], by: [right])
        #expect(wrongMethod.status == 405)
        #expect(Self.field(wrongMethod, "allow") == "GET, HEAD")
        let head = await bench.ask(.analyticsStatus, [], by: [right], method: .head)
        #expect(head.status == 200)
    }

    @Test("An origin's pushes a minute are a pace: 429 is for who is more than ten minutes ahead of it")
    func pushRate() async throws {
        let bench = try await FaceRig(pushes: 4)
        let id = try await bench.registered()
        #expect(await bench.notify(id, count: 3).status == 200)
        #expect(await bench.notify(id, count: 3, from: 3).status == 200, "two of them leave later")
        #expect(await bench.notify(id, count: 50, from: 6).status == 200)
        let refused = await bench.notify(id, from: 56)
        #expect(refused.status == 429)
        // 56 pushes at one each 15 s, the first four of them at once: 780 s ahead.
        #expect(Self.field(refused, "retry-after") == "180")
        let json = try Self.json(refused)
        #expect(json["code"]?.string == "RATE_LIMIT_HIT")
        #expect(json["retry-after"]?.int64 == 180)
        // Calls without pushes are not counted, and anyone who is refused has used nothing up.
        #expect(await bench.status(by: [Self.basic(Self.server)]).status == 200)
        bench.clock.advance(by: .seconds(180))
        #expect(await bench.notify(id, from: 56).status == 200)
    }

    @Test("What is looked up for nothing is paid for like pushes, behind all of them; nobody else pays")
    func charges() async throws {
        let bench = try await FaceRig(pushes: 60)
        let id = try await bench.registered()
        func unknown(_ count: Int, _ first: Int) async -> HTTPOutbound {
            let items = (first..<first + count).map { number in
                #"{"token_id":"\#(TokenID(UInt64(number)).text)","http_headers":{"apns_priority":10,"#
                    + #""apns_push_type":"alert"},"payload":{"push_key_id":1,"encrypted_data":"QUJD"}}"#
            }
            let body =
                #"{"realm_uuid":"\#(Self.realm)","push_requests":[\#(items.joined(separator: ","))]}"#
            return await bench.ask(.notify, Array(body.utf8), by: [Self.basic(Self.server)])
        }
        // A minute's worth, and ten minutes ahead of it.
        #expect(await unknown(500, 1).status == 200)
        #expect(await unknown(500, 1_000).status == 200)
        let refused = await unknown(1, 2_000)
        #expect(refused.status == 429)
        #expect((300...360).contains(Self.field(refused, "retry-after").flatMap { Int($0) } ?? 0))
        // A message goes out all the same, and at once.
        #expect(await bench.notify(id).status == 200)
        let counts = await bench.post(
            .analytics, [("realm_counts", "[]"), ("installation_counts", "[]")],
            by: [Self.basic(Self.server)])
        #expect(counts.status == 200, "nothing is looked up, nothing is paid")
        #expect(await bench.signUp(Self.other, host: "other.example.org").status == 200)
        let realms = #"[{"uuid":"a247ce6a-4a56-4f69-ac0e-09fe4537d3cf","id":1}]"#
        let fields = [("realm_counts", "[]"), ("installation_counts", "[]"), ("realms", realms)]
        #expect(await bench.post(.analytics, fields, by: [Self.basic(Self.server)]).status == 429)
        #expect(await bench.post(.analytics, fields, by: [Self.basic(Self.other)]).status == 200)
    }

    @Test("A caller that has not proved who it is uses up nobody's share")
    func foreignRate() async throws {
        let bench = try await FaceRig(pushes: 1)
        let id = try await bench.registered()
        let body =
            #"{"realm_uuid":"\#(Self.realm)","push_requests":[{"token_id":"\#(id.text)","http_headers":"#
            + #"{"apns_priority":10,"apns_push_type":"alert"},"payload":{"push_key_id":1,"#
            + #""encrypted_data":"QUJD"}}]}"#
        for _ in 0..<5 {
            let answer = await bench.ask(
                .notify, Array(body.utf8), by: [Self.basic(Self.server, String(repeating: "x", count: 64))])
            #expect(answer.status == 401)
        }
        #expect(await bench.notify(id).status == 200)
    }

    @Test("A large body is read only for whoever has proved who it is; with a small one, one look-up does")
    func provenBeforeRead() async throws {
        let bench = try await FaceRig(rows: 2_000)
        let id = try await bench.registered()
        let wrong = Self.basic(Self.server, String(repeating: "x", count: 64))
        bench.store.forget()
        let refused = await bench.notify(id, count: 1_000, by: wrong)
        #expect(refused.status == 401)
        // The realm stands in the body: had that been read, it would have been looked up beside the sender.
        #expect(bench.store.lookups == [["zulip-main/server"]])
        for caller in [Self.basic(Self.other), ("Authorization", "Basic !")] {
            #expect(await bench.notify(id, count: 1_000, by: caller).status == 401)
        }
        #expect(await bench.notify(id, count: 1_000).status == 200)
        bench.store.forget()
        #expect(await bench.notify(id, by: wrong).status == 401)
        #expect(bench.store.lookups == [["zulip-main/server", "zulip-main/realm"]])
    }

    @Test("A store that is out proves nobody a stranger: a large body is read then, for a notify to be held")
    func largeWhileOut() async throws {
        let bench = try await FaceRig(rows: 2_000)
        let id = try await bench.registered()
        bench.store.forget()
        bench.store.goOut()
        #expect(await bench.notify(id, count: 1_000).status == 503)
        #expect(bench.store.lookups.first == ["zulip-main/server"])
        #expect(bench.store.lookups.last?.contains("zulip-main/realm") == true)
    }

    @Test("Sign-ups and transfers of one client share a rate, whatever it asks")
    func signUpRate() async throws {
        let bench = try await FaceRig(signUps: 2)
        #expect(await bench.signUp(Self.server, host: "a.example.org").status == 200)
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        let third = "ffc7cc7c-fee5-4adf-9f44-780f9c2ed8c2"
        for answer in [
            await bench.signUp(third, host: "c.example.org"),
            await bench.post(.transfer, [("hostname", "a.example.org")]),
            await bench.post(.verifyChallenge, [("hostname", "a.example.org"), ("access_token", "t")])
        ] {
            #expect(answer.status == 429)
            #expect(Self.field(answer, "retry-after") == "30")
        }
        #expect(await bench.status(by: [Self.basic(Self.server)]).status == 200)
        #expect(await bench.signUp(Self.other, host: "b.example.org", from: 9).status == 200)
        bench.clock.advance(by: .seconds(30))
        #expect(await bench.signUp(third, host: "c.example.org").status == 200)
    }

    @Test("Whoever shows a server's key changes contact, host and key, however many strangers ask")
    func ownChanges() async throws {
        let bench = try await FaceRig(signUps: 1)
        #expect(await bench.signUp(Self.server, host: "a.example.org").status == 200)
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 429)
        let form = [
            ("zulip_org_id", Self.server), ("hostname", "moved.example.org"),
            ("contact_email", "new@example.org")
        ]
        let later = String(repeating: "n", count: 64)
        let rotated = await bench.post(
            .signUp, form + [("zulip_org_key", Self.key), ("new_org_key", later)])
        #expect(rotated.status == 200)
        #expect(try Self.json(rotated)["created"]?.bool == false)
        // Not by the key of before, nor by another, which are a stranger's; and not for ever.
        #expect(await bench.post(.signUp, form + [("zulip_org_key", Self.key)]).status == 429)
        var statuses: [Int] = []
        for _ in 0...ZulipAllowances().changes.perMinute {
            statuses.append(await bench.post(.signUp, form + [("zulip_org_key", later)]).status)
        }
        #expect(statuses.first == 200 && statuses.last == 429)
    }

    @Test("A client that asks without end uses up its own share of sign-ups, and nobody else's")
    func signUpShare() async throws {
        let bench = try await FaceRig()
        var last = 0
        for _ in 0..<100 {
            last = await bench.post(.transfer, [("hostname", "a.example.org")], from: 1).status
        }
        #expect(last == 429)
        #expect(await bench.signUp(Self.server, host: "chat.example.org", from: 2).status == 200)
    }

    @Test("A full outbox is a 503 in JSON that says when to come back, and other calls go on")
    func full() async throws {
        let bench = try await FaceRig(rows: 0, hasApp: true)
        let id = try await bench.registered()
        let answer = await bench.notify(id)
        #expect(answer.status == 503)
        let seconds = try #require(Self.field(answer, "retry-after").flatMap { Int($0) })
        #expect(seconds >= 1)
        let json = try Self.json(answer)
        #expect(json["result"]?.string == "error")
        #expect(json["code"]?.string == "SERVICE_UNAVAILABLE")
        #expect(await bench.status(by: [Self.basic(Self.server)]).status == 200)
    }

    @Test(
        "The server's own refusals have this protocol's form where it has one",
        arguments: IngressRefusal.allCases)
    func refusals(refusal: IngressRefusal) async throws {
        let face = try await FaceRig().face
        let answer = face.refuse(refusal, tag: 0)
        switch refusal {
        case .bodyTooLarge, .notFound, .overloaded, .noAnswer, .clientShare:
            let json = try Self.json(answer)
            #expect(json["result"]?.string == "error")
            #expect(json["code"]?.string?.isEmpty == false)
            let isBusy = refusal.status == 503 || refusal == .clientShare
            #expect(answer.status == (refusal == .bodyTooLarge ? 400 : refusal.status))
            #expect((Self.field(answer, "retry-after") != nil) == isBusy)
        case .malformed, .headersTooLarge, .slowSender, .unsupportedVersion, .unsupportedTransferCoding,
            .unsupportedExpectation:
            #expect(answer.status == refusal.status)
            #expect(answer.type == .text)
        }
    }

    @Test("What the role counts is heard, a legacy call among it; unknown paths are this protocol's 404")
    func notes() async throws {
        let bench = try await FaceRig()
        #expect(await bench.signUp(Self.server, host: "chat.example.org").status == 200)
        #expect(bench.seen.all.map(\.text) == ["zulip.server-signed-up"])
        let legacy = await bench.ask(.legacyTest, Array("{}".utf8), by: [Self.basic(Self.server)])
        #expect(legacy.status == 400)
        #expect(bench.seen.all.map(\.text) == ["zulip.server-signed-up", "zulip.legacy-call"])
        let answered = await bench.ask(.legacyNotify, Array("{}".utf8), by: [Self.basic(Self.server)])
        #expect(answered.status == 200)
        #expect(bench.seen.all.last?.text == "zulip.legacy-answered")
        let unknown = await bench.face.respond(to: HTTPInbound(.post, path: "/api/v1/remotes/x"))
        #expect(unknown.status == 404)
        #expect(try Self.json(unknown)["result"]?.string == "error")
        let exact = bench.face.routes.compactMap { route -> String? in
            if case .exact(let path) = route.pattern { path } else { nil }
        }
        #expect(exact == ZulipPath.allCases.map(\.rawValue))
    }
}
