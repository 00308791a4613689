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
    }

    private struct Wake: Sendable {
        /// The relay that was up, counted from 0.
        var life: Int
        /// The push service's names of what arrived; empty at FCM, which names pushes itself.
        var arrivals: [String] = []
    }

    private var wakes: [Key: Wake] = [:]
    /// The relay that is up.
    private(set) var life = 0
    /// Accounts with a subscription that was acknowledged.
    private(set) var accounts: Set<[UInt8]> = []
    private(set) var subscriptions = 0
    /// Subscriptions that were refused.
    private(set) var refused = 0
    /// Lives in which the swarm was looked at, and those in which every storage server was shown all.
    private(set) var awaited = 0
    private(set) var shown = 0
    /// Arrivals at phones whose subscription had not been acknowledged yet.
    private(set) var early = 0
    /// Arrivals that the phone could not open.
    private(set) var unreadable = 0

    mutating func subscribed(_ account: [UInt8]) {
        accounts.insert(account)
        subscriptions += 1
    }

    mutating func wasRefused() { refused += 1 }

    /// - Parameter life: the relay that was up when the message was stored.
    mutating func told(_ hash: String, to tokens: [String], in life: Int) {
        for token in tokens { wakes[Key(token: token, hash: hash)] = Wake(life: life) }
    }

    /// - Parameter id: the push's at APNs.
    mutating func delivered(_ key: Key, id: String) {
        if wakes[key] == nil { early += 1 } else { wakes[key]?.arrivals.append(id) }
    }

    mutating func couldNotOpen() { unreadable += 1 }
    mutating func killed() { life += 1 }

    /// - Parameter missing: accounts that some storage server was not shown.
    mutating func looked(missing: Int) {
        awaited += 1
        if missing == 0 { shown += 1 }
    }

    private func count(_ isCounted: (Wake) -> Bool) -> Int { wakes.values.count(where: isCounted) }

    var woken: Int { count { !$0.arrivals.isEmpty } }
    /// Allowed: gone with the relay that was told.
    var lostAtKills: Int { count { $0.arrivals.isEmpty && $0.life < life } }
    /// Allowed: sent, and killed before it was settled.
    var doubledAtKills: Int { count { $0.arrivals.count > 1 && $0.life < life } }
    /// Not allowed in the last life, which was stopped in order.
    var missing: Int { count { $0.arrivals.isEmpty && $0.life == life } }
    var doubled: Int { count { $0.arrivals.count > 1 && $0.life == life } }
    /// Not allowed in any: several storage servers tell of one message, and it is one push.
    var doubledUnderTwoNames: Int { count { Set($0.arrivals.filter { !$0.isEmpty }).count > 1 } }
    var toldToTheLast: Int { count { $0.life == life } }

    var hasPassed: Bool {
        doubled == 0 && doubledUnderTwoNames == 0 && missing == 0 && unreadable == 0 && refused == 0
            && toldToTheLast > 0 && woken > 0 && subscriptions > 0 && awaited > 0 && shown == awaited
    }

    func write(to report: inout BenchReport) {
        report.add("session_subscriptions", subscriptions)
        report.add("session_subscriptions_refused", refused)
        report.add("session_pushes_told", wakes.count)
        report.add("session_woken", woken)
        report.add("session_lost_at_kills", lostAtKills)
        report.add("session_doubled_at_kills", doubledAtKills)
        report.add("session_doubled_under_two_names", doubledUnderTwoNames)
        report.add("session_told_to_the_last", toldToTheLast)
        report.add("session_lost_by_the_last", missing)
        report.add("session_doubled_by_the_last", doubled)
        report.add("session_starts_awaited", awaited)
        report.add("session_starts_that_showed_all", shown)
        report.add("session_arrived_before_acknowledged", early)
        report.add("session_unreadable", unreadable)
    }
}
