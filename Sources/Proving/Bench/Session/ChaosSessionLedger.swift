import PushModel

/// What phones subscribed to, what storage servers told, whom it woke, and under which relay.
///
/// A storage server tells of a message once, so what it tells a relay that is dead, or dies before the pushes
/// are owed, is gone, as it is at deployed servers. What was acknowledged is not: each relay shows it to the
/// swarm again. What the last relay was told wakes each phone exactly once.
struct ChaosSessionLedger: Sendable {
    /// One message for one phone.
    struct Key: Hashable, Sendable {
        var token: String
        var hash: String

        fileprivate var mark: String { "\(token) \(hash)" }
    }

    /// Several storage servers tell of one message, and it is one push. It may be gone, or come twice, with
    /// the relay that was told.
    private(set) var book = TrialLedger(losses: .death, doubles: .death)
    /// Accounts with a subscription that was acknowledged.
    private(set) var accounts: Set<[UInt8]> = []
    private(set) var subscriptions = 0
    /// Subscriptions that were refused.
    private(set) var refused = 0
    /// Lives in which the swarm was looked at, and those in which every storage server was shown all.
    private(set) var awaited = 0
    private(set) var shown = 0
    /// Arrivals that the phone could not open.
    private(set) var unreadable = 0

    /// The relay that is up, counted from 0.
    var life: Int { book.life }
    /// Told to the relay that is up, and not arrived.
    var missing: Int { book.missing }

    mutating func subscribed(_ account: [UInt8]) {
        accounts.insert(account)
        subscriptions += 1
    }

    mutating func wasRefused() { refused += 1 }

    /// - Parameter life: the relay that was up when the message was stored.
    mutating func told(_ hash: String, to tokens: [String], in life: Int) {
        for token in tokens { book.promised(Key(token: token, hash: hash).mark, of: "session", in: life) }
    }

    /// One that nobody was told of is for a phone whose subscription had not been acknowledged yet; it is
    /// counted.
    ///
    /// - Parameter id: the push's at APNs; empty at FCM, which names pushes itself.
    mutating func delivered(_ key: Key, id: String) {
        // When it came is of no use: nothing here is judged by moments.
        book.arrived(key.mark, TrialArrival(id: id, at: .distantPast))
    }

    mutating func couldNotOpen() { unreadable += 1 }
    mutating func killed() { book.endLife() }

    /// - Parameter missing: accounts that some storage server was not shown.
    mutating func looked(missing: Int) {
        awaited += 1
        if missing == 0 { shown += 1 }
    }

    var verdict: TrialVerdict { TrialVerdict(book) }

    var hasPassed: Bool {
        let verdict = verdict
        return verdict.hasPassed && unreadable == 0 && refused == 0 && verdict.ofTheLast > 0
            && verdict.arrived > 0 && subscriptions > 0 && awaited > 0 && shown == awaited
    }

    func write(to report: inout BenchReport) {
        let verdict = verdict
        report.add("session_subscriptions", subscriptions)
        report.add("session_subscriptions_refused", refused)
        report.add("session_pushes_told", verdict.pushes)
        report.add("session_woken", verdict.arrived)
        report.add("session_lost_at_kills", verdict.lostByTheDead)
        report.add("session_doubled_at_kills", verdict.doubled - verdict.doubledWithoutCause)
        report.add("session_doubled_under_two_names", verdict.doubledUnderTwoNames)
        report.add("session_told_to_the_last", verdict.ofTheLast)
        report.add("session_lost_by_the_last", verdict.lost)
        report.add("session_doubled_by_the_last", verdict.doubledWithoutCause)
        report.add("session_starts_awaited", awaited)
        report.add("session_starts_that_showed_all", shown)
        report.add("session_arrived_before_acknowledged", book.foreignArrivals)
        report.add("session_unreadable", unreadable)
    }
}
