package import SessionPush

/// Which nodes have refused a watch for good. A node alone may lie, or have a wrong clock; when as many as
/// half of those connected in its swarm say so, and two at least where there are two, the watch leaves the
/// rotation.
package struct RefusalVotes: Sendable {
    private var voters: [UInt64: [NodeKey]] = [:]
    private let limit: Int

    /// - Parameter limit: watches of which votes are kept.
    package init(limit: Int) { self.limit = limit }

    /// - Parameter connected: nodes of the swarm that could have a say.
    /// - Returns: whether it is to leave the rotation; its votes are then forgotten.
    package mutating func add(_ revision: UInt64, by node: NodeKey, connected: Int) -> Bool {
        var names = voters[revision] ?? []
        if !names.contains(node) { names.append(node) }
        let needed = max(min(2, connected), (connected + 1) / 2)
        if names.count >= needed {
            voters[revision] = nil
            return true
        }
        if voters[revision] != nil || voters.count < limit { voters[revision] = names }
        return false
    }

    /// Begins anew: what was refused long ago by few is refused again, or is not.
    package mutating func forget() { voters.removeAll() }
}
