package import PushModel

/// What an app's database keeps of its groups: one row for each leaf. One device writes it, as one device
/// advances the group's MLS state.
///
/// Errors are the database's own and come back from ``TokenStore`` as they are.
package protocol LeafStorage: Sendable {
    /// All rows of a group, but for those past their end.
    func rows(of group: [UInt8]) async throws -> [LeafRow]
    /// Writes rows over those of the same leaves and deletes the rows of others, in one transaction where
    /// there are such.
    func write(_ rows: [LeafRow], deleting leaves: [UInt32], in group: [UInt8], now: UnixTime) async throws
    /// Deletes all rows of a group, those past their end too.
    func forget(_ group: [UInt8]) async throws
    /// Deletes rows of all groups whose end has come.
    ///
    /// - Returns: how many.
    func purge(now: UnixTime) async throws -> Int
}

/// What is kept of one leaf.
package struct LeafRow: Sendable {
    package let leaf: UInt32
    /// ``LeafTokens/encoded()``: device tokens are encrypted in it, but who is whose is not.
    package let body: Secret
    /// When the row may be deleted; ``UnixTime/distantFuture`` where it has no end.
    package let expiresAt: UnixTime

    package init(leaf: UInt32, body: Secret, expiresAt: UnixTime) {
        self.leaf = leaf
        self.body = body
        self.expiresAt = expiresAt
    }
}

/// Where a device keeps its groups' tokens between runs: one row for each leaf, so that a call writes what it
/// changed and no more (decision 0020).
package struct TokenStore: Sendable {
    private let storage: any LeafStorage

    package init(_ storage: any LeafStorage) { self.storage = storage }

    /// What was kept of a group.
    ///
    /// - Throws: `.malformedRow` for a row that was not written by ``save(_:of:in:now:)``; what the storage
    ///   throws.
    package func load(_ group: [UInt8]) async throws -> GroupTokens {
        var leaves: [UInt32: LeafTokens] = [:]
        for row in try await storage.rows(of: group) {
            guard let entry = LeafTokens(decoding: row.body) else { throw MarmotError(.malformedRow) }
            leaves[row.leaf] = entry
        }
        return GroupTokens(leaves)
    }

    /// Writes the leaves that a call said to have changed.
    package func save(
        _ changed: Set<UInt32>, of tokens: GroupTokens, in group: [UInt8], now: UnixTime
    ) async throws {
        var rows: [LeafRow] = []
        var gone: [UInt32] = []
        for leaf in changed.sorted() {
            if let entry = tokens.leaves[leaf], !entry.isEmpty {
                rows.append(LeafRow(leaf: leaf, body: entry.encoded(), expiresAt: entry.expiresAt))
            } else {
                gone.append(leaf)
            }
        }
        if !changed.isEmpty { try await storage.write(rows, deleting: gone, in: group, now: now) }
    }

    /// The group is left: nothing of it stays.
    package func forget(_ group: [UInt8]) async throws { try await storage.forget(group) }

    /// Removes what is past its end in every group, 35 days after it was learned.
    package func purge(now: UnixTime) async throws -> Int { try await storage.purge(now: now) }
}
