import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// How a registration that a push service refused ends (docs/conformance/zulip.md).
@Suite("Zulip expiry", .timeLimit(.minutes(30)))
struct ExpiryTests {
    private static let day = Duration.seconds(86_400)

    /// A relay with one registration that Apple has refused.
    private func withDead(
        _ body: @Sendable (RealmRig, TokenID, RecordKey) async throws -> Void
    ) async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            relay.services.answer("ab12", with: StubServices.Upstream(status: 410, word: "Unregistered"))
            #expect(await bench.notify([id]).json["delete_token_ids"]?[0]?.string == id.text)
            relay.services.answer("ab12", with: nil)
            try await body(bench, id, relay.deviceKey(try #require(UUIDText(RealmRig.realm)), id))
        }
    }

    @Test("A refused registration stays 42 days and comes back with a newer one")
    func revived() async throws {
        try await withDead { bench, id, key in
            let dead = try #require(try await bench.relay.record(key))
            #expect(dead.state == .expired(at: bench.now))
            #expect(dead.expiresAt == bench.now + Self.day * 42)
            bench.relay.advance(by: Self.day * 41)
            let later = bench.now + Self.day * 41
            _ = try await bench.register("ab12", timestamp: later.seconds)
            let live = try #require(try await bench.relay.record(key))
            #expect(live.state == .live)
            #expect(live.expiresAt == later + ZulipLimits.registrationLife)
            // The old end means nothing any more.
            bench.relay.advance(by: Self.day * 2)
            // What goes is the count of the first day's registrations.
            #expect(try await bench.relay.store.purge(before: later + Self.day * 2, limit: 9) == 1)
            #expect(try await bench.relay.record(key)?.state == .live)
            let answer = await bench.notify(raw: RealmRig.body([RealmRig.item(id.text, data: "QUJE")]))
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
        }
    }

    @Test("A token registered anew in the second of its death lives; one registered a second before does not")
    func sameSecond() async throws {
        try await withDead { bench, id, key in
            let dead = try #require(try await bench.relay.record(key))
            guard case .expired(let at) = dead.state else {
                Issue.record("it is not dead")
                return
            }
            _ = try await bench.register("ab12", timestamp: at.seconds - 1)
            #expect(try await bench.relay.record(key)?.state == .expired(at: at))
            _ = try await bench.register("ab12", timestamp: at.seconds)
            #expect(try await bench.relay.record(key)?.state == .live)
            let answer = await bench.notify(raw: RealmRig.body([RealmRig.item(id.text, data: "QUJE")]))
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
        }
    }

    @Test("After 42 days a refused registration is purged, and the origin hears the same as before")
    func purged() async throws {
        try await withDead { bench, id, key in
            let before = await bench.notify([id])
            bench.relay.advance(by: Self.day * 42)
            #expect(try await bench.relay.record(key) == nil)
            let end = bench.now + Self.day * 42
            #expect(try await bench.relay.store.purge(before: end, limit: 9) == 0)
            #expect(try await bench.relay.store.purge(before: end + .milliseconds(1), limit: 9) == 1)
            #expect(await bench.notify([id]).json == before.json)
            _ = try await bench.register("ab12", timestamp: end.seconds)
            #expect(try await bench.relay.record(key)?.state == .live)
        }
    }

    @Test("A registration that nobody repeats ends after 400 days, and each repeat begins the span anew")
    func forgotten() async throws {
        let bench = try await RealmRig()
        let id = try await bench.register("ab12", timestamp: bench.now.seconds)
        let key = try await bench.relay.deviceKey(try #require(UUIDText(RealmRig.realm)), id)
        bench.relay.advance(by: Self.day * 399)
        _ = try await bench.register("ab12", timestamp: (bench.now + Self.day * 399).seconds)
        // A repeat is the same row.
        #expect(try await bench.relay.deviceRevisions().count == 1)
        bench.relay.advance(by: Self.day * 399)
        #expect(try await bench.relay.record(key) != nil)
        bench.relay.advance(by: Self.day)
        #expect(try await bench.relay.record(key) == nil)
    }
}
