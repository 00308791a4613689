import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A server that was set up anew reports the realms that it had under its old id. They are free as soon as
/// that id has deactivated itself, and what it had registered there is nobody's (decision 0044).
@Suite("Zulip realms that change hands", .timeLimit(.minutes(30)))
struct TakeOverTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let second = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let third = "ffc7cc7c-fee5-4adf-9f44-780f9c2ed8c2"

    private func deactivate(_ bench: RealmRig, _ id: String) async -> Int {
        await bench.relay.ask(
            "POST", ZulipPath.deactivate.rawValue, authorization: RealmRig.basic(id), body: Array("{}".utf8)
        ).status
    }

    private func count(_ bench: RealmRig, _ room: String) async throws -> Int {
        let space = Space(text: "\(TestRelay.instance.text)/\(room)")
        return try await bench.relay.store.page(.space(space), after: 0, limit: 10_000).count
    }

    private func sweepAll(_ bench: RealmRig) async throws {
        // Ends: each round removes what it counts.
        while try await bench.servers.sweep() > 0 {}
    }

    private func dead(_ answer: TestAnswer) -> [String] {
        answer.json["delete_token_ids"]?.array?.compactMap(\.string) ?? []
    }

    /// The new id of the first server.
    private func setUpAnew(_ bench: RealmRig, _ id: String = TakeOverTests.second) async -> TestAnswer {
        #expect(await bench.signUp(id, host: "chat.example.org").status == 200)
        return await bench.reportRealm(RealmRig.realm, by: id)
    }

    @Test("Its realms are free at once, and none of its devices can be reached by who has them then")
    func atOnce() async throws {
        let bench = try await RealmRig(now: Self.now)
        let old = try await bench.register("ab12", timestamp: Self.now.seconds)
        #expect(await deactivate(bench, RealmRig.server) == 200)
        let told = await setUpAnew(bench)
        #expect(told.status == 200, "\(told.json["msg"]?.string ?? "")")
        #expect(told.json["realms"]?[RealmRig.realm]?["can_push"]?.bool == true)
        try await bench.relay.running { relay in
            // Not registered here: the same answer as for an id that nobody has.
            #expect(dead(await bench.notify([old], by: Self.second)) == [old.text])
            #expect(relay.services.sends.isEmpty)
            // The phone registers again, and only then is it reached; the old row is another one.
            _ = try await bench.register("ab12", timestamp: Self.now.seconds, by: Self.second)
            let answer = await bench.notify([old], by: Self.second)
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
            #expect(try await relay.deviceRevisions().count == 2)
        }
        #expect(await deactivate(bench, RealmRig.server) == 401)
    }

    @Test("The old devices are swept as ever, and the new ones stay", arguments: [1, 300])
    func swept(devices: Int) async throws {
        let bench = try await RealmRig(now: Self.now)
        for number in 0..<devices {
            _ = try await bench.register("ab\(1000 + number)", timestamp: Self.now.seconds)
        }
        #expect(await deactivate(bench, RealmRig.server) == 200)
        #expect(await setUpAnew(bench).status == 200)
        let kept = try await bench.register("ab1000", timestamp: Self.now.seconds, by: Self.second)
        #expect(try await bench.relay.deviceRevisions().count == devices + 1)
        bench.relay.advance(by: .seconds(60))
        try await sweepAll(bench)
        #expect(try await bench.relay.deviceRevisions().count == 1)
        for room in ["vacated", "leaving"] { #expect(try await count(bench, room) == 0) }
        try await bench.relay.running { _ in
            let answer = await bench.notify([kept], by: Self.second)
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
        }
    }

    @Test("A realm may go from hand to hand before anything is swept; each sweep takes its own")
    func handToHand() async throws {
        let bench = try await RealmRig(now: Self.now)
        let id = try await bench.register("ab12", timestamp: Self.now.seconds)
        #expect(await deactivate(bench, RealmRig.server) == 200)
        #expect(await setUpAnew(bench).status == 200)
        _ = try await bench.register("ab12", timestamp: Self.now.seconds, by: Self.second)
        #expect(await deactivate(bench, Self.second) == 200)
        #expect(await setUpAnew(bench, Self.third).status == 200)
        #expect(dead(await bench.notify([id], by: Self.third)) == [id.text])
        _ = try await bench.register("ab12", timestamp: Self.now.seconds, by: Self.third)
        #expect(try await bench.relay.deviceRevisions().count == 3)
        bench.relay.advance(by: .seconds(60))
        try await sweepAll(bench)
        #expect(try await bench.relay.deviceRevisions().count == 1)
        #expect(try await count(bench, "realm") == 1)
        #expect(await bench.reportRealm(RealmRig.realm, by: Self.third).status == 200)
    }

    @Test("Realms of a store from before are told apart as well, and their devices still found")
    func earlierRealms() async throws {
        let bench = try await RealmRig(now: Self.now)
        let realm = try #require(UUIDText(RealmRig.realm))
        let server = try #require(UUIDText(RealmRig.server))
        // As an earlier program wrote them.
        let earlier = ZulipRealm(id: realm, server: server, isLocallyDeleted: true, naming: .byRealm)
        let record = earlier.record(bench.relay.keys, now: Self.now)
        #expect(try await bench.relay.store.apply([.put(record, if: .any)]) == .committed)
        let id = try await bench.register("ab12", timestamp: Self.now.seconds)
        let named = bench.relay.keys.device(earlier.tenancy, id)
        let owned = try #require(try await bench.relay.record(named))
        #expect(owned.state == .live)
        // Reported again it keeps its naming, and so its devices.
        #expect(await bench.reportRealm(RealmRig.realm, by: RealmRig.server).status == 200)
        try await bench.relay.running { _ in
            let answer = await bench.notify([id])
            #expect(answer.json["apple_successfully_sent_count"]?.int64 == 1)
        }
        #expect(await deactivate(bench, RealmRig.server) == 200)
        #expect(await setUpAnew(bench).status == 200)
        #expect(dead(await bench.notify([id], by: Self.second)) == [id.text])
        _ = try await bench.register("cd34", timestamp: Self.now.seconds, by: Self.second)
        bench.relay.advance(by: .seconds(60))
        try await sweepAll(bench)
        #expect(try await bench.relay.record(named) == nil)
        #expect(try await bench.relay.deviceRevisions().count == 1)
    }

    @Test("Realms of a server that is there are not free")
    func notFree() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.second, host: "b.example.org").status == 200)
        let answer = await bench.reportRealm(RealmRig.realm, by: Self.second)
        #expect(answer.status == 400)
        #expect(answer.json["msg"]?.string == "Duplicate registration detected.")
    }

    @Test("A realm that a forgotten server left behind is free, and is swept too")
    func orphan() async throws {
        let bench = try await RealmRig(now: Self.now)
        _ = try await bench.register("ab12", timestamp: Self.now.seconds)
        let id = try #require(UUIDText(RealmRig.server))
        let gone = bench.relay.keys.server(id)
        #expect(try await bench.relay.store.apply([.delete(gone, if: .any)]) == .committed)
        #expect(await bench.signUp(Self.second, host: "b.example.org").status == 200)
        #expect(await bench.reportRealm(RealmRig.realm, by: Self.second).status == 200)
        bench.relay.advance(by: .seconds(60))
        try await sweepAll(bench)
        #expect(try await bench.relay.deviceRevisions().isEmpty)
    }

    @Test("Forgetting the old server, or the new one, removes its devices and leaves the other's")
    func forgotten() async throws {
        for isOld in [true, false] {
            let bench = try await RealmRig(now: Self.now)
            _ = try await bench.register("ab12", timestamp: Self.now.seconds)
            #expect(await deactivate(bench, RealmRig.server) == 200)
            #expect(await setUpAnew(bench).status == 200)
            for token in ["ab12", "cd34"] {
                _ = try await bench.register(token, timestamp: Self.now.seconds, by: Self.second)
            }
            let id = try #require(UUIDText(isOld ? RealmRig.server : Self.second))
            let forgotten = try #require(try await bench.servers.forget(id))
            #expect(forgotten.servers == 1 && forgotten.devices == (isOld ? 1 : 2))
            #expect(forgotten.realms == (isOld ? 0 : 1))
            #expect(try await bench.relay.deviceRevisions().count == (isOld ? 2 : 1))
            bench.relay.advance(by: .seconds(60))
            try await sweepAll(bench)
            #expect(try await bench.relay.deviceRevisions().count == (isOld ? 2 : 0))
        }
    }
}
