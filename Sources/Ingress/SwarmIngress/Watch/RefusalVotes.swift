package import SessionPush

/// Which nodes have refused a watch for good. A single node may lie or have a wrong clock. It is decided when
/// half of the nodes that can vote refuse it, and at least two if there are two.
package struct RefusalVotes: Sendable {
    private var refusers: [UInt64: [NodeKey]] = [:]
    private let limit: Int

    /// - Parameter limit: watches of which votes are kept.
    package init(limit: Int) { self.limit = limit }

    /// - Parameter voters: nodes of the swarm that can vote, now or later.
    /// - Returns: whether it is decided; its votes are then forgotten.
    package mutating func add(_ revision: UInt64, by node: NodeKey, of voters: Int) -> Bool {
        var names = refusers[revision] ?? []
        if !names.contains(node) { names.append(node) }
        let needed = max(min(2, voters), (voters + 1) / 2)
        if names.count >= needed {
            refusers[revision] = nil
            return true
        }
        if refusers[revision] != nil || refusers.count < limit { refusers[revision] = names }
        return false
    }

    /// Starts again: watches that a few nodes refused long ago are refused again, or not.
    package mutating func forget() { refusers.removeAll() }
}
