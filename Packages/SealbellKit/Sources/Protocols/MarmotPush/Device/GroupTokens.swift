package import PushModel
package import Secp256k1Keys
import WireFormats

/// The token store of one group, by leaf (spec, "Token Storage"; docs/conformance/marmot.md). A value: what
/// it was told goes in, and it tells which leaves changed.
package struct GroupTokens: Sendable {
    package private(set) var leaves: [UInt32: LeafTokens]

    package init(_ leaves: [UInt32: LeafTokens] = [:]) { self.leaves = leaves }

    /// A token in force of a leaf that stands in the tree.
    package struct Live: Sendable {
        package let leaf: UInt32
        package let member: XOnlyKey
        package let token: GossipToken
    }

    /// Tokens of active leaves whose member is still the one that the tokens were learned of.
    package func live(in view: some GroupView, at now: UnixTime) -> [Live] {
        var found: [Live] = []
        for leaf in Set(view.activeLeaves).sorted() {
            guard let entry = leaves[leaf], view.member(ofLeaf: leaf) == entry.member else { continue }
            let said = entry.said.flatMap { $0.isOld(at: now) ? nil : $0.tokens } ?? []
            for token in said + entry.records.compactMap(\.token) {
                found.append(Live(leaf: leaf, member: entry.member, token: token))
            }
        }
        return found
    }

    /// Records in force, for a list of `push-v1`.
    func records(in view: some GroupView) -> [PushRecord] {
        view.activeLeaves.sorted().flatMap { leaf -> [PushRecord] in
            guard let entry = leaves[leaf], view.member(ofLeaf: leaf) == entry.member else { return [] }
            return entry.records.filter { $0.token != nil }
        }
    }

    // MARK: tag profiles

    /// A leaf says its whole set: 447, and 449 of `seed`.
    ///
    /// - Returns: false when a later message of that leaf is known.
    mutating func replace(
        _ leaf: UInt32, of member: XOnlyKey, with tokens: [GossipToken], _ order: MessageOrder?,
        fingerprint: [UInt8]? = nil, now: UnixTime
    ) -> Bool {
        var entry = entry(leaf, of: member)
        if let known = entry.said?.order, let order, order <= known { return false }
        // A removal leaves its order behind, so that neither a late message nor hearsay undoes it.
        entry.said = LeafTokens.Said(tokens: tokens, addedAt: now, order: order, fingerprint: fingerprint)
        leaves[leaf] = entry
        return true
    }

    /// A leaf takes some of its tokens back: 450 of `seed`.
    mutating func remove(
        _ boxes: [Secret], ofLeaf leaf: UInt32, of member: XOnlyKey, _ order: MessageOrder, now: UnixTime
    ) -> Bool {
        let left = entry(leaf, of: member).said?.tokens.filter { token in
            !boxes.contains { $0 == token.box }
        }
        let addedAt = leaves[leaf]?.said?.addedAt ?? now
        guard replace(leaf, of: member, with: left ?? [], order, now: now) else { return false }
        // Taking one back does not make the others younger.
        if left?.isEmpty == false { leaves[leaf]?.said?.addedAt = addedAt }
        return true
    }

    /// What another member lists: it fills gaps, and never overwrites or renews (docs/conformance/marmot.md).
    ///
    /// - Returns: leaves that were filled.
    mutating func fill(_ listed: [ListedToken], in view: some GroupView, now: UnixTime) -> Set<UInt32> {
        var filled: Set<UInt32> = []
        let active = Set(view.activeLeaves)
        for (leaf, entries) in Dictionary(grouping: listed, by: \.leaf) {
            guard leaf != view.ownLeaf, active.contains(leaf), let member = view.member(ofLeaf: leaf),
                entries.count <= MarmotLimits.tokensOfLeaf
            else { continue }
            var entry = entry(leaf, of: member)
            guard entry.said == nil else { continue }
            entry.said = LeafTokens.Said(tokens: entries.map(\.token), addedAt: now, order: nil)
            leaves[leaf] = entry
            filled.insert(leaf)
        }
        return filled
    }

    // MARK: push-v1

    /// Writes a record when it is greater than what stands under its key.
    ///
    /// - Parameter record: one whose proof holds (``OwnerProof``).
    /// - Returns: false when the record changes nothing.
    mutating func apply(_ record: PushRecord, group: [UInt8]) -> Bool {
        var entry = entry(record.key.leaf, of: record.key.member)
        if let at = entry.records.firstIndex(where: { $0.key == record.key }) {
            guard Self.isGreater(record, than: entry.records[at], group) else { return false }
            entry.records[at] = record
        } else {
            guard entry.records.count < MarmotLimits.recordsOfLeaf else { return false }
            entry.records.append(record)
        }
        leaves[record.key.leaf] = entry
        return true
    }

    private static func isGreater(_ record: PushRecord, than other: PushRecord, _ group: [UInt8]) -> Bool {
        if record.ownerTimestamp != other.ownerTimestamp {
            return record.ownerTimestamp > other.ownerTimestamp
        }
        return OwnerProof.digest(other, group: group)
            .lexicographicallyPrecedes(OwnerProof.digest(record, group: group))
    }

    // MARK: forgetting

    /// MLS Remove: everything of these leaves goes, tombstones too.
    package mutating func remove(leaves gone: some Sequence<UInt32>) -> Set<UInt32> {
        Set(gone.filter { leaves.removeValue(forKey: $0) != nil })
    }

    /// Drops what is older than ``MarmotLimits/tokenLife``, and leaves that are no longer their member's.
    package mutating func prune(in view: some GroupView, now: UnixTime) -> Set<UInt32> {
        var changed: Set<UInt32> = []
        let active = Set(view.activeLeaves)
        for (leaf, entry) in leaves {
            guard active.contains(leaf), view.member(ofLeaf: leaf) == entry.member else {
                changed.insert(leaf)
                leaves[leaf] = nil
                continue
            }
            guard entry.said?.isOld(at: now) == true else { continue }
            changed.insert(leaf)
            leaves[leaf]?.said = nil
            if entry.records.isEmpty { leaves[leaf] = nil }
        }
        return changed
    }

    /// What is known of a leaf; nothing when it was another member's.
    private func entry(_ leaf: UInt32, of member: XOnlyKey) -> LeafTokens {
        guard let entry = leaves[leaf], entry.member == member else { return LeafTokens(member: member) }
        return entry
    }
}
