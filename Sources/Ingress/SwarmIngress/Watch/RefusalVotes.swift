package import SessionPush

/// Which nodes have refused a watch for good. A node alone may lie, or have a wrong clock; when as many as
/// half of those that could have a say refuse it, and two at least where there are two, it is decided.
package struct RefusalVotes: Sendable {
    private var refusers: [UInt64: [NodeKey]] = [:]
    private let limit: Int

    /// - Parameter limit: watches of which votes are kept.
    package init(limit: Int) { self.limit = limit }

    /// - Parameter voters: nodes of the swarm that could have a say, at once or later.
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

    /// Begins anew: what was refused long ago by few is refused again, or is not.
    package mutating func forget() { refusers.removeAll() }
}
