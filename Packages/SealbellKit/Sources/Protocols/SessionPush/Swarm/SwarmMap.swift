import PushModel

/// Where accounts and swarms stand: a ring of 64-bit numbers (§10.2).
package enum SwarmRing {
    /// The id of a node that is in no swarm.
    package static let none = UInt64.max

    /// An account's point: the four big-endian words of its key, combined by exclusive or.
    ///
    /// - Parameter account: 33 bytes, the prefix first.
    package static func point(of account: UnsafeRawBufferPointer) -> UInt64 {
        precondition(account.count == SessionLimits.accountBytes, "an account has 33 bytes")
        var point: UInt64 = 0
        for offset in stride(from: 1, to: account.count, by: 8) {
            point ^= UInt64(bigEndian: account.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        return point
    }
}

/// The swarms that there are, and the part of the ring that each has.
package struct SwarmMap: Sendable, Hashable {
    /// Rising, each once.
    package let ids: [UInt64]

    package init(_ ids: some Sequence<UInt64>) { self.ids = Set(ids).sorted() }

    /// The swarm nearest to a point, and of two as near the one on the left; `nil` when there is none.
    package func swarm(of point: UInt64) -> UInt64? {
        guard let first = ids.first, let last = ids.last else { return nil }
        var (low, high) = (0, ids.count)
        while low < high {
            let middle = (low + high) / 2
            if ids[middle] < point { low = middle + 1 } else { high = middle }
        }
        let right = low < ids.count ? ids[low] : first
        let left = low > 0 ? ids[low - 1] : last
        return right &- point < point &- left ? right : left
    }

    /// The part of the ring whose accounts are in a swarm; `nil` for one that there is not.
    package func arc(of id: UInt64) -> SwarmArc? {
        guard let index = ids.firstIndex(of: id) else { return nil }
        let left = ids[index > 0 ? index - 1 : ids.count - 1]
        let right = ids[index + 1 < ids.count ? index + 1 : 0]
        return SwarmArc(id: id, left: id &- left, right: right &- id)
    }
}

/// The points nearest to one swarm: what ``SwarmMap/swarm(of:)`` says, told by two subtractions.
package struct SwarmArc: Sendable, Hashable {
    package let id: UInt64
    private let below: UInt64
    private let above: UInt64

    /// - Parameters:
    ///   - left: the distance from the swarm on the left, and `right`: to the one on the right; 0 when it is
    ///     the only one.
    init(id: UInt64, left: UInt64, right: UInt64) {
        self.id = id
        // A tie goes to the left: so on our right it is ours.
        above = left == 0 ? .max : right / 2
        below = left == 0 ? .max : (left - 1) / 2
    }

    package func contains(_ point: UInt64) -> Bool { point &- id <= above || id &- point <= below }
}

/// For which accounts a node may speak: those of its part of the ring, and for some minutes those of the
/// parts that it had before. A node that is a block behind tells of messages by the swarms that it knows.
package struct SwarmScope: Sendable, Hashable {
    /// `nil`: it is in no swarm.
    package let arc: SwarmArc?
    package let former: [SwarmArc]

    package init(_ arc: SwarmArc?, former: [SwarmArc] = []) {
        self.arc = arc
        self.former = former
    }

    package func contains(_ point: UInt64) -> Bool {
        if let arc, arc.contains(point) { return true }
        return former.contains { $0.contains(point) }
    }
}

extension AccountID {
    /// Where the account stands in the ring.
    package var swarmPoint: UInt64 { bytes.reveal { SwarmRing.point(of: $0) } }
}
