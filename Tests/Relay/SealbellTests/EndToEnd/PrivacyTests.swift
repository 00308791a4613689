import PushModel
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Two servers on one relay", .timeLimit(.minutes(30)))
struct PrivacyTests {
    /// What a server can tell of an answer, but for its time, and what the relay did for it.
    private struct Seen: Equatable {
        var status: Int
        /// Token ids, which are the asker's own words, taken out; their number is kept.
        var text: String
        var dead: Int
        var work: [String]
    }

    private static func ids(_ count: Int) -> [String] {
        (0..<count).map { _ in TokenID(UInt64.random(in: .min ... .max)).text }
    }

    private static func body(_ realm: String, _ ids: [String]) -> Secret {
        let data = Base64.text((0..<64).map { _ in UInt8.random(in: .min ... .max) })
        let items = ids.map { id in
            """
            {"token_id":"\(id)","http_headers":{"apns_priority":10,"apns_push_type":"alert"},\
            "payload":{"push_key_id":7,"encrypted_data":"\(data)"}}
            """
        }
        return Secret(
            "{\"realm_uuid\":\"\(realm)\",\"push_requests\":[\(items.joined(separator: ","))]}".utf8)
    }

    /// A server's call with a body of its own making.
    private static func ask(
        _ server: DemoServer, _ relay: RunningRelay, _ body: Secret, _ ids: [String],
        _ watch: WatchedEngine.Watch
    ) async throws -> Seen {
        let head = server.origin.deactivate()
        _ = watch.take()
        let answer = try await relay.door().ask(
            "POST", "/api/v1/remotes/push/e2ee/notify", headers: head.headers, body: body)
        let work = watch.take()
        let json = (try? JSONValue.parse(answer.body)) ?? .null
        let dead = json["delete_token_ids"]?.array ?? []
        // Anyone who asked reads back what they sent, in their order.
        if answer.status == 200 { #expect(dead.compactMap(\.string) == ids) }
        let text = dead.isEmpty ? answer.text : String(answer.text.prefix { $0 != "[" })
        return Seen(status: answer.status, text: text, dead: dead.count, work: work)
    }

    @Test("Ten thousand tries of one server tell nothing of another's devices")
    func tries() async throws {
        let watch = WatchedEngine.Watch()
        try await RelayStage.running(engine: { WatchedEngine($0, watch) }) { relay in
            let a = try await relay.server("a.acme.example")
            let b = try await relay.server("b.acme.example")
            var known: [String] = []
            for _ in 0..<20 {
                known.append(try await relay.phone(.apns, of: a).tokenID.text)
            }
            // Its first call finds out whose the realm is; from then on one look-up does.
            let first = Self.ids(1)
            _ = try await Self.ask(b, relay, Self.body(b.realm.uuid, first), first, watch)
            // In its own realm: ids that the other has registered, and ids that nobody has.
            for size in [1, 20] + Array(repeating: 1000, count: 5) {
                var mixed = Self.ids(size)
                for index in 0..<min(size, known.count) { mixed[index] = known[index] }
                let random = Self.ids(size)
                let real = try await Self.ask(b, relay, Self.body(b.realm.uuid, mixed), mixed, watch)
                let unreal = try await Self.ask(b, relay, Self.body(b.realm.uuid, random), random, watch)
                #expect(real == unreal)
                #expect(real.status == 200 && real.dead == size)
                // A large body is read once its sender has been looked up by itself.
                let isLarge = Self.body(b.realm.uuid, mixed).count > ZulipLimits.formBodyBytes
                #expect(real.work.count == (isLarge ? 2 : 1))
                #expect(!isLarge || real.work.first == "find 1, found +")
                #expect(real.work.last?.hasPrefix("find \(size + 2), found ++-") == true)
            }
            // In the other's realm it is refused before any device is looked up.
            for _ in 0..<20 {
                let real = try await Self.ask(b, relay, Self.body(a.realm.uuid, known), known, watch)
                let random = Self.ids(known.count)
                let unreal = try await Self.ask(b, relay, Self.body(a.realm.uuid, random), random, watch)
                #expect(real.status == 403 && unreal.status == 403)
                #expect(real.text == unreal.text && real.dead == unreal.dead)
                #expect(real.work == unreal.work && real.work == ["find 2, found ++"])
            }
            // The owner itself is served.
            #expect(relay.stage.apns.counters.received == 0)
        }
    }

    @Test("A foreign registration is refused alike, whether or not the device is registered")
    func registrations() async throws {
        let watch = WatchedEngine.Watch()
        try await RelayStage.running(engine: { WatchedEngine($0, watch) }) { relay in
            let a = try await relay.server("a.acme.example")
            let b = try await relay.server("b.acme.example")
            let registered = try await relay.phone(.apns, of: a)
            let unknown = try DemoApp(.apns, relay.bouncerKey)
            func foreign(_ phone: DemoApp) async throws -> (TestAnswer, [String]) {
                _ = watch.take()
                let answer = try await relay.ask(
                    b.origin.register(phone.registration, realm: a.realm.uuid))
                return (answer, watch.take())
            }
            let (real, realWork) = try await foreign(registered)
            let (unreal, unrealWork) = try await foreign(unknown)
            #expect(real.status == 403 && real.body == unreal.body && real.status == unreal.status)
            #expect(realWork == unrealWork)
            // In its own realm the same phone may be registered: it shows the sealed box itself.
            #expect(
                try await b.register(registered, relay).body
                    == (try await b.register(unknown, relay).body))
        }
    }
}
