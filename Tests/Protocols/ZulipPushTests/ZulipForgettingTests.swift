import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

@Suite("Forgetting a server", .timeLimit(.minutes(30)))
struct ZulipForgettingTests {
    private func servers(_ bench: RealmRig) -> ZulipServers {
        var world = World.live
        world.now = { bench.now }
        return ZulipServers(TestRelay.instance, bench.relay.store, world: world)
    }

    private func devices(_ bench: RealmRig, _ count: Int) async throws -> [TokenID] {
        var ids: [TokenID] = []
        for number in 0..<count {
            ids.append(
                try await bench.register(
                    String(repeating: "ab", count: 31) + "\(10 + number)", timestamp: bench.now.seconds))
        }
        return ids
    }

    @Test(
        "All of it goes in one commit where it fits, in several where it does not; the counts agree",
        arguments: [10_000, 3])
    func forget(_ perCommit: Int) async throws {
        let bench = try await RealmRig()
        let ids = try await devices(bench, 8)
        let id = try #require(UUIDText(RealmRig.server))
        let realm = try #require(UUIDText(RealmRig.realm))
        let keys = bench.relay.keys
        let tenancy = ZulipTenancy(realm, of: id, .byServer)
        let names = [keys.server(id), keys.realm(realm)] + ids.map { keys.device(tenancy, $0) }
        #expect(try await bench.relay.store.find(names).allSatisfy { $0 != nil })
        let forgotten = try await servers(bench).forget(id, perCommit: perCommit)
        var expected = ZulipForgotten()
        expected.servers = 1
        expected.hosts = 1
        expected.realms = 1
        expected.devices = 8
        #expect(forgotten == expected)
        #expect(try await bench.relay.store.find(names).allSatisfy { $0 == nil })
        #expect(try await servers(bench).forget(id) == nil, "there is nobody any more")
        #expect(try await servers(bench).holder(of: "chat.example.org") == nil)
        // Its name is free.
        #expect(
            await bench.signUp("a247ce6a-4a56-4f69-ac0e-09fe4537d3ce", host: "chat.example.org").status == 200
        )
    }

    @Test("One device goes and the others stay; what is not there counts nothing")
    func device() async throws {
        let bench = try await RealmRig()
        let ids = try await devices(bench, 2)
        let realm = try #require(UUIDText(RealmRig.realm))
        let keys = bench.relay.keys
        #expect(try await servers(bench).forgetDevice(realm, .token(ids[0])) == 1)
        #expect(try await servers(bench).forgetDevice(realm, .token(ids[0])) == 0)
        let tenancy = ZulipTenancy(realm, of: try #require(UUIDText(RealmRig.server)), .byServer)
        let left = try await bench.relay.store.find(ids.map { keys.device(tenancy, $0) })
        #expect(left[0] == nil && left[1] != nil)
    }
}
