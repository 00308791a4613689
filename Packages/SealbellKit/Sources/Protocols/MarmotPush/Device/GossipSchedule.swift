import PushModel

/// When a device owes its group an answer, a refresh or a look for old tokens (docs/conformance/marmot.md).
/// It holds no timer: it names deadlines, and is told when they have come.
struct GossipSchedule: Sendable {
    /// A request that nobody has answered yet.
    struct Pending: Sendable {
        let request: GossipReference
        let profile: GossipProfile
        let due: ContinuousClock.Instant
    }

    private(set) var pending: [Pending] = []
    /// When a request of a leaf was last taken for answering.
    private var taken: [UInt32: ContinuousClock.Instant] = [:]
    /// When this device's own token is to be made anew.
    var refreshAt: UnixTime?
    private(set) var pruneAt: UnixTime

    init(now: UnixTime) { pruneAt = now + MarmotLimits.pruneEvery }

    /// Someone asks. One member cannot make everybody talk: at most one request of a leaf in 30 seconds is
    /// answered, and at most ten at once.
    ///
    /// - Parameter delay: random, of 0 to ``MarmotLimits/answerDelay``.
    mutating func sawRequest(
        _ request: GossipReference, _ profile: GossipProfile, leaf: UInt32, at now: ContinuousClock.Instant,
        delay: Duration
    ) {
        taken = taken.filter { now - $0.value < MarmotLimits.answerPause }
        guard taken[leaf] == nil, pending.count < MarmotLimits.pendingAnswers else { return }
        taken[leaf] = now
        pending.append(Pending(request: request, profile: profile, due: now + delay))
    }

    /// Someone answered: ours is no longer wanted. A list of `push-v1` names no request and answers all.
    mutating func sawList(_ profile: GossipProfile, answering reference: GossipReference?) {
        pending.removeAll { waiting in
            waiting.profile == profile && (reference.map { $0.answers(waiting.request) } ?? true)
        }
    }

    /// Answers whose time has come.
    mutating func answers(at now: ContinuousClock.Instant) -> [Pending] {
        let due = pending.filter { $0.due <= now }
        pending.removeAll { $0.due <= now }
        return due
    }

    mutating func mayPrune(at now: UnixTime) -> Bool {
        // A clock that was set back must not put the next look off by more than its pause.
        guard now >= pruneAt || pruneAt.since(now) > MarmotLimits.pruneEvery else { return false }
        pruneAt = now + MarmotLimits.pruneEvery
        return true
    }

    /// Whether the own token is to be made anew: its time has come, or the clock was set back since that time
    /// was chosen, by so much that others would forget the token first.
    func isRefreshDue(at now: UnixTime) -> Bool {
        guard let refreshAt else { return false }
        let longest = MarmotLimits.refreshLeast + MarmotLimits.refreshSpread
        return refreshAt <= now || refreshAt.since(now) > longest
    }

    /// The nearest of all deadlines.
    func nextDeadline(from now: Moment) -> ContinuousClock.Instant {
        let dates = [pruneAt, refreshAt].compactMap { $0 }
            .map { now.instant + max(.zero, $0.since(now.wall)) }
        return (pending.map(\.due) + dates).min() ?? now.instant + MarmotLimits.pruneEvery
    }
}
