import PushModel
import SessionPush

/// The watches that one connected node has been shown, and those that come next.
///
/// Two lanes lead to it, each with one request at a time: one shows everything, after connecting and then
/// once in 45 to 55 minutes; the other shows new registrations, which so need not wait for a renewal.
struct Watching: Sendable {
    enum Lane: Sendable, Hashable, CaseIterable { case everything, fresh }

    enum Work: Sendable {
        case idle
        /// The store did not answer.
        case resting(until: ContinuousClock.Instant)
        case reading(Int)
        case asked(tag: [UInt8], until: ContinuousClock.Instant, id: Int, batch: WatchBatch)

        var isIdle: Bool { if case .idle = self { true } else { false } }
        /// The reading that it waits for, or whose batch it has sent.
        var reading: Int? {
            switch self {
            case .idle, .resting: nil
            case .reading(let id), .asked(_, _, let id, _): id
            }
        }
    }

    private(set) var works: [Lane: Work] = [:]
    /// The renewal that goes on: from the entry behind `after` to `end`.
    private var after: UInt64?
    private var end: UInt64 = 0
    private var renewAt: ContinuousClock.Instant
    /// Later entries have not been shown.
    private var freshAfter: UInt64
    private var hasFresh = false
    /// Replies in a row that did not come.
    private(set) var strikes = 0
    /// Replies in a row that said that accounts belong to another swarm.
    private var disagreements = 0

    /// Shows everything up to `last`, and what comes behind it as it comes.
    init(last: UInt64, renewAt: ContinuousClock.Instant) {
        after = 0
        end = last
        freshAfter = last
        self.renewAt = renewAt
    }

    subscript(lane: Lane) -> Work {
        get { works[lane] ?? .idle }
        set { works[lane] = newValue }
    }

    /// Where a lane continues; `nil`: it has nothing to do, or something under way.
    func cursor(of lane: Lane) -> UInt64? {
        guard self[lane].isIdle else { return nil }
        switch lane {
        case .everything: return after
        case .fresh: return hasFresh ? freshAfter : nil
        }
    }

    /// There are new entries of its swarm.
    mutating func grew() { hasFresh = true }

    /// Begins another renewal when it is time for one.
    ///
    /// - Parameter next: when the one after it is due.
    mutating func renew(at now: ContinuousClock.Instant, last: UInt64, next: ContinuousClock.Instant) {
        guard after == nil, renewAt <= now else { return }
        (after, end, renewAt) = (0, last, next)
    }

    /// A lane is done up to a revision; `isLast`: the swarm has no later entry.
    mutating func went(_ lane: Lane, through revision: UInt64, isLast: Bool) {
        self[lane] = .idle
        switch lane {
        case .everything: after = isLast || revision >= end ? nil : revision
        case .fresh:
            freshAfter = max(freshAfter, revision)
            if isLast { hasFresh = false }
        }
    }

    mutating func answered() { strikes = 0 }

    /// The node says that accounts are not in its swarm: it is a block behind or ahead of us. Everything is
    /// shown again after a while, which doubles as long as the node repeats this.
    ///
    /// - Returns: whether it has said so before.
    mutating func disagreed(
        at now: ContinuousClock.Instant, first: Duration, most: Duration
    ) -> Bool {
        let isRepeated = disagreements > 0
        renewAt = min(renewAt, now + first.doubled(disagreements, atMost: most))
        disagreements += 1
        return isRepeated
    }

    mutating func agreed() { disagreements = 0 }
    /// - Parameter again: when everything is shown again, because this reply is missing.
    mutating func struck(again: ContinuousClock.Instant) {
        strikes += 1
        renewAt = min(renewAt, again)
    }
}
