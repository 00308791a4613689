import Primitives
package import PushModel

/// Where a device keeps its groups' tokens between runs: one record for each leaf, over the registry port,
/// paged by group (decision 0020). One device writes it, as one device advances the group's MLS state.
package struct TokenStore: Sendable {
    private let registry: any Registry
    private let leafSpace: Space
    private let groupSpace: Space

    package init(_ registry: any Registry, instance: ConfiguredName) {
        self.registry = registry
        leafSpace = Space(instance, "token")
        groupSpace = Space(instance, "group")
    }

    /// What was kept of a group. Records past their end are none.
    package func load(_ group: [UInt8]) async throws(StoreError) -> GroupTokens {
        var leaves: [UInt32: LeafTokens] = [:]
        try await eachRecord(of: group) { record throws(StoreError) in
            guard let leaf = Self.leaf(of: record.key.name), let entry = LeafTokens(decoding: record.body)
            else { throw StoreError(.corrupt) }
            leaves[leaf] = entry
        }
        return GroupTokens(leaves)
    }

    /// Writes the leaves that a call said to have changed.
    package func save(
        _ changed: Set<UInt32>, of tokens: GroupTokens, in group: [UInt8], now: UnixTime
    ) async throws(StoreError) {
        let changes = changed.sorted().map { leaf -> Change in
            let key = key(group, leaf)
            guard let entry = tokens.leaves[leaf], !entry.isEmpty else { return .delete(key, if: .any) }
            return .put(
                Record(
                    key: key, owner: owner(group), touchedAt: now, expiresAt: entry.expiresAt,
                    body: entry.encoded()), if: .any)
        }
        try await apply(changes)
    }

    /// The group is left: nothing of it stays.
    package func forget(_ group: [UInt8]) async throws(StoreError) {
        var changes: [Change] = []
        try await eachRecord(of: group) { changes.append(.delete($0.key, if: .any)) }
        try await apply(changes)
    }

    /// Removes what is past its end in every group, 35 days after it was learned.
    package func purge(now: UnixTime) async throws(StoreError) -> Int {
        try await registry.purge(before: now, limit: MarmotLimits.storePage)
    }

    private func apply(_ changes: [Change]) async throws(StoreError) {
        var rest = changes[...]
        while !rest.isEmpty {
            _ = try await registry.apply(Array(rest.prefix(MarmotLimits.storePage)))
            rest = rest.dropFirst(MarmotLimits.storePage)
        }
    }

    private func eachRecord(
        of group: [UInt8], _ body: (Record) throws(StoreError) -> Void
    ) async throws(StoreError) {
        var revision: UInt64 = 0
        for _ in 0..<MarmotLimits.storePages {
            let page = try await registry.page(
                .owner(owner(group)), after: revision, limit: MarmotLimits.storePage)
            for record in page { try body(record) }
            guard page.count == MarmotLimits.storePage, let last = page.last else { return }
            revision = last.revision
        }
    }

    // MARK: names

    /// Two bytes of length ‖ group id.
    private func owner(_ group: [UInt8]) -> RecordKey { RecordKey(groupSpace, Secret(Self.name(group))) }

    /// The same ‖ leaf, four bytes.
    private func key(_ group: [UInt8], _ leaf: UInt32) -> RecordKey {
        RecordKey(leafSpace, Secret(Self.name(group) + withUnsafeBytes(of: leaf.bigEndian) { Array($0) }))
    }

    private static func name(_ group: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: group.count >> 8), UInt8(truncatingIfNeeded: group.count)] + group
    }

    private static func leaf(of name: Secret) -> UInt32? {
        guard name.count >= 6 else { return nil }
        return name.reveal { $0.suffix(4).reduce(0) { $0 << 8 | UInt32($1) } }
    }
}
