package import PushModel

/// Leaves in a registry: one record for each, paged by group (decision 0020).
package struct RegistryLeaves: LeafStorage {
    private let registry: any Registry
    private let leafSpace: Space
    private let groupSpace: Space

    package init(_ registry: any Registry, instance: ConfiguredName) {
        self.registry = registry
        leafSpace = Space(instance, "token")
        groupSpace = Space(instance, "group")
    }

    /// - Throws: `StoreError`, `.corrupt` for a record whose name is no leaf's.
    package func rows(of group: [UInt8]) async throws -> [LeafRow] {
        var rows: [LeafRow] = []
        var revision: UInt64 = 0
        for _ in 0..<MarmotLimits.storePages {
            let page = try await registry.page(
                .owner(owner(group)), after: revision, limit: MarmotLimits.storePage)
            for record in page {
                guard let leaf = Self.leaf(of: record.key.name) else { throw StoreError(.corrupt) }
                rows.append(LeafRow(leaf: leaf, body: record.body, expiresAt: record.expiresAt))
            }
            guard page.count == MarmotLimits.storePage, let last = page.last else { break }
            revision = last.revision
        }
        return rows
    }

    package func put(_ rows: [LeafRow], in group: [UInt8], now: UnixTime) async throws {
        try await apply(
            rows.map { row in
                .put(
                    Record(
                        key: key(group, row.leaf), owner: owner(group), touchedAt: now,
                        expiresAt: row.expiresAt, body: row.body), if: .any)
            })
    }

    package func delete(_ leaves: [UInt32], in group: [UInt8]) async throws {
        try await apply(leaves.map { .delete(key(group, $0), if: .any) })
    }

    package func purge(now: UnixTime) async throws -> Int {
        try await registry.purge(before: now, limit: MarmotLimits.storePage)
    }

    private func apply(_ changes: [Change]) async throws {
        var rest = changes[...]
        while !rest.isEmpty {
            _ = try await registry.apply(Array(rest.prefix(MarmotLimits.storePage)))
            rest = rest.dropFirst(MarmotLimits.storePage)
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
