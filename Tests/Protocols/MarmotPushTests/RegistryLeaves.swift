import MarmotPush
import PushModel

/// A device's leaves in a real store: one record for each, paged by group (decision 0020). It stands for the
/// app's database.
struct RegistryLeaves: LeafStorage {
    /// Records that one read or one commit takes.
    static let page = 256
    /// More pages than a group can have.
    private static let pages = 64

    private let registry: any Registry
    private let leafSpace: Space
    private let groupSpace: Space

    init(_ registry: any Registry, instance: ConfiguredName) {
        self.registry = registry
        leafSpace = Space(instance, "token")
        groupSpace = Space(instance, "group")
    }

    /// - Throws: `StoreError`, `.corrupt` for a record whose name is no leaf's.
    func rows(of group: [UInt8]) async throws -> [LeafRow] {
        var rows: [LeafRow] = []
        var revision: UInt64 = 0
        for _ in 0..<Self.pages {
            let page = try await registry.page(
                .owner(owner(group)), after: revision, limit: Self.page)
            for record in page {
                guard let leaf = Self.leaf(of: record.key.name) else { throw StoreError(.corrupt) }
                rows.append(LeafRow(leaf: leaf, body: record.body, expiresAt: record.expiresAt))
            }
            guard page.count == Self.page, let last = page.last else { break }
            revision = last.revision
        }
        return rows
    }

    func write(_ rows: [LeafRow], deleting leaves: [UInt32], in group: [UInt8], now: UnixTime) async throws {
        let written = rows.map { row in
            Change.put(
                Record(
                    key: key(group, row.leaf), owner: owner(group), touchedAt: now, expiresAt: row.expiresAt,
                    body: row.body), if: .any)
        }
        var rest = (written + leaves.map { .delete(key(group, $0), if: .any) })[...]
        while !rest.isEmpty {
            _ = try await registry.apply(Array(rest.prefix(Self.page)))
            rest = rest.dropFirst(Self.page)
        }
    }

    func forget(_ group: [UInt8]) async throws {
        var gone = Self.page
        while gone == Self.page { gone = try await registry.forget(owner: owner(group), limit: Self.page) }
    }

    func purge(now: UnixTime) async throws -> Int {
        try await registry.purge(before: now, limit: Self.page)
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
