import AtRest
import DeliveryTesting
@testable import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("Marmot token store", .timeLimit(.minutes(30)))
struct TokenStoreTests {
    private struct Rig {
        let store: TokenStore
        let registry: SealedStore
        let clock: ManualClock

        init() async throws {
            let clock = ManualClock(start: UnixTime(seconds: 1_767_225_600))
            let world = clock.world(seed: 3)
            self.clock = clock
            registry = try await SealedMemory(world).store
            store = TokenStore(
                RegistryLeaves(registry, instance: try #require(ConfiguredName("marmot-device"))))
        }
    }

    @Test("What a device learned is there after a restart, in each format", arguments: TokenFormat.allCases)
    func survives(_ format: TokenFormat) async throws {
        let bench = try await Rig()
        let crowd = try Crowd(format, seed: 21)
        for leaf in Crowd.leaves { try crowd.join(leaf) }
        let group = crowd[5].view.groupID
        let known = crowd[5].device.tokens
        try await bench.store.save(Set(Crowd.leaves), of: known, in: group, now: bench.clock.now)
        let loaded = try await bench.store.load(group)
        #expect(Set(loaded.leaves.keys) == Set(Crowd.leaves))
        for leaf in Crowd.leaves {
            let before = try #require(known.leaves[leaf])
            let after = try #require(loaded.leaves[leaf])
            #expect(after.member == before.member && after.addedAt == before.addedAt)
            #expect(
                after.said?.order == before.said?.order && after.said?.fingerprint == before.said?.fingerprint
            )
            #expect(after.tokens.count == 1 && after.tokens[0].isSame(as: before.tokens[0]))
            #expect(after.tokens[0].relayHint == before.tokens[0].relayHint)
            #expect(after.records.map(\.ownerSignature) == before.records.map(\.ownerSignature))
        }
        // Another group knows nothing of it.
        #expect(try await bench.store.load([9]).leaves.isEmpty)
    }

    @Test("A removal and a tombstone are kept, and undo what comes late after a restart")
    func tombstones() async throws {
        for format in [TokenFormat.seed, .pushV1] {
            let bench = try await Rig()
            let crowd = try Crowd(format, seed: 22)
            let events = try crowd.join(3)
            crowd.props.pass(.seconds(1))
            let out = crowd.optOut(3)
            try crowd.spread(out.events, from: 3)
            let group = crowd[5].view.groupID
            try await bench.store.save([3], of: crowd[5].device.tokens, in: group, now: bench.clock.now)
            crowd[5].device = MarmotLeaf(
                crowd[5].device.settings, identity: crowd[5].pair, tokens: try await bench.store.load(group),
                now: crowd.props.now.wall)
            let late = GroupMessage(events[0], senderLeaf: 3, order: MessageOrder(epoch: 1, index: 0))
            let receipt = crowd.receive(5, late)
            #expect(receipt.ignored == nil && receipt.changed.isEmpty)
            #expect(crowd[5].known(crowd.props).isEmpty)
        }
    }

    @Test("MLS Remove deletes the leaf's record, and leaving the group deletes all of them")
    func forgets() async throws {
        let bench = try await Rig()
        let crowd = try Crowd(.seed, seed: 23)
        for leaf in Crowd.leaves { try crowd.join(leaf) }
        let group = crowd[5].view.groupID
        try await bench.store.save(
            Set(Crowd.leaves), of: crowd[5].device.tokens, in: group, now: bench.clock.now)
        let gone = crowd.removed(5, leaves: [3]).changed
        try await bench.store.save(gone, of: crowd[5].device.tokens, in: group, now: bench.clock.now)
        #expect(Set(try await bench.store.load(group).leaves.keys) == [0, 5, 7])
        // Two are past their end, which nobody reads any more and which go all the same.
        bench.clock.advance(by: .seconds(36 * 86_400))
        #expect(try await bench.store.load(group).leaves.isEmpty)
        try await bench.store.forget(group)
        #expect(try await bench.store.purge(now: bench.clock.now) == 0)
    }

    @Test("Tokens said by tags end after 35 days by themselves; records of push-v1 do not")
    func ends() async throws {
        for format in [TokenFormat.mip05Long, .pushV1] {
            let bench = try await Rig()
            let crowd = try Crowd(format, seed: 24)
            try crowd.join(3)
            let group = crowd[5].view.groupID
            try await bench.store.save([3], of: crowd[5].device.tokens, in: group, now: bench.clock.now)
            bench.clock.advance(by: .seconds(35 * 86_400))
            #expect(try await bench.store.load(group).leaves.count == 1)
            bench.clock.advance(by: .seconds(1))
            let left = format == .pushV1 ? 1 : 0
            #expect(try await bench.store.load(group).leaves.count == left)
            #expect(try await bench.store.purge(now: bench.clock.now) == 1 - left)
        }
    }

    @Test("More leaves than one page of the store are all written, read and forgotten")
    func pages() async throws {
        let bench = try await Rig()
        var props = Props(seed: 25)
        let server = try props.pair().publicKey
        let member = try props.pair().publicKey
        let token = try props.token(.seed, to: server)
        var tokens = GroupTokens()
        let count = UInt32(2 * RegistryLeaves.page + 3)
        for leaf in 0..<count {
            _ = tokens.replace(leaf, of: member, with: [token], nil, now: bench.clock.now)
        }
        try await bench.store.save(Set(0..<count), of: tokens, in: [1], now: bench.clock.now)
        #expect(try await bench.store.load([1]).leaves.count == Int(count))
        try await bench.store.forget([1])
        #expect(try await bench.store.load([1]).leaves.isEmpty)
    }

    @Test("A record that we did not write is a fault of the store, not an empty group")
    func corrupt() async throws {
        let bench = try await Rig()
        let name = try #require(ConfiguredName("marmot-device"))
        let key = RecordKey(Space(name, "token"), Secret([0, 1, 7, 0, 0, 0, 3]))
        let owner = RecordKey(Space(name, "group"), Secret([0, 1, 7]))
        for body in ["", "{}", "[]", #"{"member":"00"}"#] {
            let record = Record(key: key, owner: owner, touchedAt: bench.clock.now, body: Secret(body.utf8))
            _ = try await bench.registry.apply([.put(record, if: .any)])
            await #expect(throws: MarmotError(.malformedRow), "\(body)") { try await bench.store.load([7]) }
        }
    }

    @Test("An entry truncated at any length is none")
    func truncated() throws {
        for format in [TokenFormat.seed, .pushV1] {
            let crowd = try Crowd(format, seed: 26)
            try crowd.join(3)
            let whole = try #require(crowd[5].device.tokens.leaves[3]).encoded()
            #expect(LeafTokens(decoding: whole) != nil)
            for count in 0..<whole.count {
                let cut = whole.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                #expect(LeafTokens(decoding: cut) == nil, "\(format) at \(count)")
            }
        }
    }
}
