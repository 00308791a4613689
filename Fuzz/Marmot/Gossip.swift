import MarmotPush
import PushModel
import Secp256k1Keys
import WireFormats

/// What members of a group tell each other, and what a device keeps of it.
///
/// Ids and owners' proofs hold for no invented text, so both are made anew around what came: what an insider
/// could send is reached, not only what a stranger could.
let gossipTargets: [String: Body] = [
    // A rumor of kind 447 to 450 as JSON.
    "marmot-gossip": { bytes in
        guard let event = rumor(bytes), let gossip = try? Gossip(reading: event) else { return }
        switch gossip {
        case .request(let profile, let own, let reference):
            precondition(own.count <= MarmotLimits.tokensOfLeaf)
            guard profile == .seed || own.count == 1 else { return }
            let text = GossipEvent.request(
                own, nonce: reference.nonce, author: event.pubkey, at: event.createdAt)
            precondition(profile == .mip05 || (try? Gossip(reading: text)) != nil)
        case .list(_, let listed, _, let unusable):
            precondition(listed.count + unusable <= MarmotLimits.listedTokens)
        case .records(let records, _): precondition(records.count <= MarmotLimits.recordsOfList)
        case .update, .removal, .recordRequest: return
        }
    },
    // The content of a 448 of push-v1: `{"v":…,"tokens":[…]}`.
    "marmot-push-record": { bytes in
        for kind in [NostrKind.tokenList, NostrKind.tokenUpdateOrRemoval] {
            let event = NostrEvent.rumor(
                kind: kind, createdAt: 1, tags: [["v", PushRecord.version]], content: Secret(copying: bytes),
                author: alice.publicKey)
            guard let gossip = try? Gossip(reading: event), case .records(let entries, _) = gossip else {
                continue
            }
            let records = entries.compactMap { $0 }
            for record in records {
                _ = OwnerProof.verifies(record, group: group, .legacy)
                guard let signed = signed(record) else { continue }
                precondition(OwnerProof.verifies(signed, group: group))
                precondition(!OwnerProof.verifies(signed, group: [1]))
            }
            let again =
                kind == NostrKind.tokenList
                ? GossipEvent.recordLists(records, author: alice.publicKey, at: 1)
                : [GossipEvent.recordRemovals(records, author: alice.publicKey, at: 1)]
            for event in again where !records.isEmpty {
                guard let read = try? Gossip(reading: event), case .records(let same, _) = read else {
                    preconditionFailure("what we write we can read")
                }
                precondition(!same.contains { $0 == nil })
            }
        }
    },
    // Rumors as JSON, one a line: what a device makes of them in this order, and what it then says itself.
    "marmot-device": { bytes in
        var random = Chance()
        var device = MarmotLeaf(
            MarmotLeaf.Settings(
                platform: .apple, server: alice.publicKey, format: .pushV1, proofs: .legacy), identity: carol,
            now: start.wall)
        var index: UInt64 = 0
        for line in bytes.split(separator: 10).prefix(8) {
            guard let event = rumor(UnsafeRawBufferPointer(rebasing: line)) else { continue }
            for event in [event] + insiders(event) {
                index += 1
                let leaf = view.leaves.first { $0.value == event.pubkey }?.key ?? 3
                let message = GroupMessage(
                    event, senderLeaf: leaf, order: MessageOrder(epoch: index & 3, index: index))
                let receipt = device.receive(message, in: view, now: start, using: &random)
                precondition(receipt.changed.allSatisfy { view.leaves[$0] != nil })
            }
        }
        for entry in device.tokens.leaves.values where !entry.isEmpty { check(entry) }
        let later = Moment(wall: start.wall + .seconds(86_401), instant: start.instant + .seconds(86_401))
        for event in device.due(at: later, in: view, using: &random).events {
            precondition((try? Gossip(reading: event)) != nil, "what we write we can read")
        }
        _ = device.nextDeadline(from: later)
    },
    // A leaf's row in the registry.
    "marmot-leaf-tokens": { bytes in
        guard let entry = LeafTokens(decoding: Secret(copying: bytes)) else { return }
        check(entry)
        for now in [start.wall, .distantPast, .distantFuture, UnixTime(milliseconds: .min)] {
            var tokens = GroupTokens([3: entry])
            _ = tokens.live(in: view, at: now)
            _ = tokens.prune(in: view, now: now)
        }
    }
]

/// A group of three, as the vectors have it: alice at 3, bob at 7; the device is carol's.
private struct Tree: GroupView {
    let leaves = [UInt32(3): alice.publicKey, 7: bob.publicKey, 9: carol.publicKey]
    var groupID: [UInt8] { group }
    var ownLeaf: UInt32 { 9 }
    var activeLeaves: [UInt32] { [3, 7, 9] }
    func member(ofLeaf leaf: UInt32) -> XOnlyKey? { leaves[leaf] }
}

/// The same words in each run.
private struct Chance: RandomNumberGenerator {
    private var state: UInt64 = 1
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state
    }
}

private let view = Tree()
private let start = Moment(wall: UnixTime(seconds: 1_767_225_601), instant: .now)
private let group = key("bbe1ed7d091c46d73062a9fe305e8441")
private let alice = pair("9d47eb110e15821cd9bfd97605fa3d4c2033527e72838d9c6a25858a0db036c1")
private let bob = pair("ce6d6efd9c428c91b72b14b9e4849c8d8f72418199382010043bb383f49383a8")
private let carol = pair("0ce833acfe31822580a383a51b54a653b98103c779f3a694b74fb8ce39cf6592")
private let zeros = [UInt8](repeating: 0, count: 32)

private func key(_ hex: String) -> [UInt8] {
    do { return try Hex.decode(hex.utf8) } catch { preconditionFailure("hex of ours") }
}

private func pair(_ hex: String) -> Secp256k1KeyPair {
    do { return try Secp256k1KeyPair(secret: Secret(key(hex))) } catch {
        preconditionFailure("a scalar of the vectors")
    }
}

/// The event with the id that it should have, and without a signature.
private func rumor(_ bytes: UnsafeRawBufferPointer) -> NostrEvent? {
    guard let event = try? NostrEvent.parse(bytes, .rumor) else { return nil }
    return .rumor(
        kind: event.kind, createdAt: event.createdAt, tags: event.tags, content: event.content,
        author: event.pubkey)
}

/// The record signed by its member, where that is one of ours.
private func signed(_ record: PushRecord) -> PushRecord? {
    guard let owner = [alice, bob, carol].first(where: { $0.publicKey == record.key.member }) else {
        return nil
    }
    return OwnerProof.sign(
        record.key, fingerprint: record.fingerprint, token: record.token,
        ownerTimestamp: record.ownerTimestamp, group: group, by: owner, auxiliary: zeros)
}

/// The same records as their owners would sign them.
private func insiders(_ event: NostrEvent) -> [NostrEvent] {
    guard let gossip = try? Gossip(reading: event), case .records(let entries, _) = gossip else { return [] }
    let records = entries.compactMap { $0.flatMap(signed) }
    let (tokens, removals) = (records.filter { $0.token != nil }, records.filter { $0.token == nil })
    return GossipEvent.recordLists(tokens, author: event.pubkey, at: event.createdAt)
        + (removals.isEmpty
            ? [] : [GossipEvent.recordRemovals(removals, author: event.pubkey, at: event.createdAt)])
}

/// A row comes back as it went.
private func check(_ entry: LeafTokens) {
    let text = entry.encoded()
    guard text.count <= MarmotLimits.frameBytes else { return }
    guard let again = LeafTokens(decoding: text) else { preconditionFailure("what we write we can read") }
    precondition(again.encoded() == text)
}
