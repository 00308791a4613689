package import SessionPush

/// Counts the watches that storage nodes have refused lately, for an alert: each watch that as many nodes of
/// its swarm refuse as ``RefusalVotes`` requires, for whatever reason.
///
/// A single device may have a signature that only nodes can judge, such as that of a removed group member. So
/// a few refused watches are reported only if there are few watches. Once reported, the alert holds until
/// half of that number are left, so that it does not come and go.
package struct RefusedWatches: Sendable {
    private let limits: SwarmLimits
    private var votes: RefusalVotes
    private var decided: Set<UInt64> = []
    /// The oldest first, each with those of one part of the span.
    private var parts: [(began: ContinuousClock.Instant, count: Int)] = []
    private var isTold = false

    package init(_ limits: SwarmLimits) {
        self.limits = limits
        votes = RefusalVotes(limit: limits.votes)
    }

    /// A node refuses a watch. Each watch counts once until ``forget()``.
    ///
    /// - Parameter voters: nodes of its swarm that fall to this process.
    package mutating func add(
        _ revision: UInt64, by node: NodeKey, of voters: Int, at now: ContinuousClock.Instant
    ) {
        guard !decided.contains(revision), votes.add(revision, by: node, of: voters) else { return }
        if decided.count < limits.votes { decided.insert(revision) }
        if let last = parts.last, now - last.began < limits.refusedFor / Self.grain {
            parts[parts.count - 1].count += 1
        } else {
            parts.append((now, 1))
        }
    }

    /// - Parameter watches: in the rotation.
    package mutating func look(_ watches: Int, at now: ContinuousClock.Instant) {
        let span = limits.refusedFor
        parts.removeAll { now - $0.began >= span }
        let enough = enough(of: max(watches, recent))
        isTold = recent > 0 && (isTold ? recent * 2 >= enough : recent >= enough)
    }

    /// The number to report to an operator; 0: too few.
    package var told: Int { isTold ? recent : 0 }

    /// Starts again with each renewal: watches that are still refused are refused again, and count again.
    package mutating func forget() {
        votes.forget()
        decided.removeAll()
    }

    private var recent: Int { parts.reduce(0) { $0 + $1.count } }

    private func enough(of watches: Int) -> Int {
        // At most as many as votes are kept for.
        min(max(min(limits.refusedLeast, watches), watches / limits.refusedPart), limits.votes / 2)
    }

    /// Parts of the span that are kept; the span may be too short by one part.
    private static let grain = 12
}
