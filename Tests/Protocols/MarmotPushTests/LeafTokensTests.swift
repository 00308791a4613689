@testable import MarmotPush
import PushModel
import Testing

/// A leaf's tokens in the bytes that a device keeps over a restart.
@Suite("Marmot tokens at rest", .timeLimit(.minutes(30)))
struct LeafTokensTests {
    /// What a device knew, written and read again.
    private func kept(_ known: GroupTokens) throws -> GroupTokens {
        GroupTokens(try known.leaves.mapValues { try #require(LeafTokens(decoding: $0.encoded())) })
    }

    @Test("What a device learned is there after a restart, in each format", arguments: TokenFormat.allCases)
    func survives(_ format: TokenFormat) throws {
        let crowd = try Crowd(format, seed: 21)
        for leaf in Crowd.leaves { try crowd.join(leaf) }
        let known = crowd[5].device.tokens
        let loaded = try kept(known)
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
    }

    @Test("A removal and a tombstone are kept, and undo what comes late after a restart")
    func tombstones() throws {
        for format in [TokenFormat.seed, .pushV1] {
            let crowd = try Crowd(format, seed: 22)
            let events = try crowd.join(3)
            crowd.props.pass(.seconds(1))
            let out = crowd.optOut(3)
            try crowd.spread(out.events, from: 3)
            crowd[5].device = MarmotLeaf(
                crowd[5].device.settings, identity: crowd[5].pair, tokens: try kept(crowd[5].device.tokens),
                now: crowd.props.now.wall)
            let late = GroupMessage(events[0], senderLeaf: 3, order: MessageOrder(epoch: 1, index: 0))
            let receipt = crowd.receive(5, late)
            #expect(receipt.ignored == nil && receipt.changed.isEmpty)
            #expect(crowd[5].known(crowd.props).isEmpty)
        }
    }

    @Test("Bytes that we did not write are no entry", arguments: ["", "{}", "[]", #"{"member":"00"}"#])
    func corrupt(_ body: String) {
        #expect(LeafTokens(decoding: Secret(body.utf8)) == nil)
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
