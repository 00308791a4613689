import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A realm that somebody else holds costs its own part of an upload, and nothing else (decision 0055).
@Suite("Zulip realms that somebody else holds", .timeLimit(.minutes(30)))
struct SquattingTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let victim = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let own = ["a74ead24-d964-44aa-ae4e-b1114d22ffe6", "0f0c1c43-8f53-4fd7-a0a8-6f25a4a3b1f1"]

    private func canPush(_ answer: TestAnswer) -> [String: Bool] {
        var found: [String: Bool] = [:]
        for (name, value) in answer.json["realms"]?.object?.members ?? [] {
            found[name] = value["can_push"]?.bool
        }
        return found
    }

    @Test("A foreign realm in an upload leaves the server's own ones theirs, and says so of itself")
    func foreign() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.victim, host: "b.example.org").status == 200)
        let answer = await bench.reportRealms([Self.own[0], RealmRig.realm, Self.own[1]], by: Self.victim)
        #expect(answer.status == 200)
        #expect(canPush(answer) == [Self.own[0]: true, RealmRig.realm: false, Self.own[1]: true])
        // What is its own can push at once; what is not still cannot.
        let id = try await bench.register(
            "ab12", timestamp: Self.now.seconds, realm: Self.own[1], by: Self.victim)
        try await bench.relay.running { _ in
            let sent = await bench.notify([id], realm: Self.own[1], by: Self.victim)
            #expect(sent.json["apple_successfully_sent_count"]?.int64 == 1)
        }
        let refused = await bench.notify([id], realm: RealmRig.realm, by: Self.victim)
        #expect(refused.status == 403 && refused.code == "REMOTE_REALM_SERVER_MISMATCH_ERROR")
        // And the holder has lost nothing.
        let held = await bench.reportRealm(RealmRig.realm, by: RealmRig.server)
        #expect(canPush(held).values.first == true)
    }

    @Test("An upload of nothing but foreign realms is told so as deployed")
    func nothingOfItsOwn() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.victim, host: "b.example.org").status == 200)
        let answer = await bench.reportRealms([RealmRig.realm], by: Self.victim)
        #expect(answer.status == 400)
        #expect(answer.json["msg"]?.string == "Duplicate registration detected.")
    }

    @Test("A holder whose record a newer version wrote is a holder: its realm is not free")
    func unreadable() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.victim, host: "b.example.org").status == 200)
        try await bench.makeUnreadable(RealmRig.server)
        let answer = await bench.reportRealms([RealmRig.realm, Self.own[0]], by: Self.victim)
        #expect(canPush(answer) == [RealmRig.realm: false, Self.own[0]: true])
    }

    @Test("Realms of a suspended server are free; the others of its realms and devices stay its own")
    func suspended() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(
            await bench.reportRealms([RealmRig.realm, Self.own[0]], by: RealmRig.server).status == 200)
        let taken = try await bench.register("ab12", timestamp: Self.now.seconds)
        let kept = try await bench.register("cd34", timestamp: Self.now.seconds, realm: Self.own[0])
        let squatter = try #require(UUIDText(RealmRig.server))
        #expect(try await bench.servers.set(suspended: true, squatter) == .done)
        #expect(await bench.signUp(Self.victim, host: "b.example.org").status == 200)
        let answer = await bench.reportRealms([RealmRig.realm], by: Self.victim)
        #expect(answer.status == 200)
        #expect(canPush(answer) == [RealmRig.realm: true])
        #expect(
            await bench.notify([taken], by: Self.victim).json["delete_token_ids"]?[0]?.string == taken.text)
        bench.relay.advance(by: .seconds(60))
        // Ends: each round removes what it counts.
        while try await bench.servers.sweep() > 0 {}
        #expect(try await bench.relay.deviceRevisions().count == 1)
        #expect(try await bench.servers.set(suspended: false, squatter) == .done)
        try await bench.relay.running { _ in
            let sent = await bench.notify([kept], realm: Self.own[0])
            #expect(sent.json["apple_successfully_sent_count"]?.int64 == 1)
            #expect(await bench.notify([taken]).status == 403)
        }
    }
}
