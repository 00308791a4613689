import PushModel
package import Secp256k1Keys

/// What to do with wraps that waited at a relay while this server was away (docs/conformance/marmot.md).
package enum MarmotBacklog: Sendable, Hashable {
    /// They are dropped on purpose: waking somebody for a message that is hours old is of no use.
    case liveOnly
    /// They are taken if the trigger's own time is not older than this. The sender states that time; our own
    /// origin writes the true one (§9.11). A trigger with a random time is dropped, as with `liveOnly`.
    case grace(Duration)
}

/// The most in any minute and in any hour; 0: no limit.
package struct RateRule: Sendable, Hashable {
    package var perMinute: Int
    package var perHour: Int

    package init(perMinute: Int, perHour: Int) {
        self.perMinute = perMinute
        self.perHour = perHour
    }

    /// An equal part of it, rounded up; no limit stays none.
    func part(of members: Int) -> RateRule {
        guard members > 1 else { return self }
        return RateRule(
            perMinute: (perMinute + members - 1) / members, perHour: (perHour + members - 1) / members)
    }
}

/// The budgets of docs/conformance/marmot.md. They limit the work that an anonymous sender can cause.
///
/// If several processes share a store, the budgets of keys are divided among them; the budget for everything
/// limits one process, and each process has the whole of it (decision 0039).
package struct MarmotBudgets: Sendable {
    /// Wraps that are decrypted, and attempts at a token: each is one or two multiplications on the curve.
    /// The deployed server stops at 600 a minute, which ten junk wraps a second use up for everybody;
    /// ``everything(cpuPercent:of:)`` computes what a server can do.
    package var everything = RateRule(perMinute: 60_000, perHour: 3_600_000)
    /// By the author of a trigger, as the seed text asks. One-time authors never reach it. One message in a
    /// group of 600 is ten triggers of one author, so this is a message a second.
    package var sender = RateRule(perMinute: 600, perHour: 20_000)
    /// By encrypted token, as in the deployed server.
    package var encryptedToken = RateRule(perMinute: 240, perHour: 5_000)
    /// By device token: a device has one encrypted token for each of its groups.
    package var deviceToken = RateRule(perMinute: 240, perHour: 5_000)
    /// The most keys in each of these, and in each memory of repeats: at some 100 bytes, 10 MB each.
    package var keys = 100_000

    package init() {}

    /// A rule for authors: an hour allows as much as 33 full minutes, so that a conversation may be lively,
    /// but not for ever.
    package static func sender(perMinute: Int) -> RateRule {
        RateRule(perMinute: perMinute, perHour: perMinute * 100 / 3)
    }

    /// What a part of one core can open.
    ///
    /// - Parameters:
    ///   - cpuPercent: of one core, 1 to 100.
    ///   - attempt: CPU time of one attempt at a token, from ``AttemptCost/measure()``.
    package static func everything(cpuPercent: Int, of attempt: Duration) -> RateRule {
        let minute = Duration.seconds(60) * cpuPercent / 100
        // A rule of 0 means no limit, and counters have 32 bits.
        let perMinute = min(max(1, Int(minute / max(attempt, .nanoseconds(1_000)))), Int(UInt32.max) / 60)
        return RateRule(perMinute: perMinute, perHour: 60 * perMinute)
    }
}

/// How one instance serves: its keys and what an operator may choose.
package struct MarmotServing: Sendable {
    /// Newest first; the old key is kept until clients have encrypted their tokens for the new one.
    package let keys: [Secp256k1KeyPair]
    package var formats = Set(TokenFormat.allCases)
    package var wake: MarmotWake
    /// The app's bundle id; `nil`: APNs tokens lead to no push.
    package var topic: String?
    package var servesFCM: Bool
    package var backlog = MarmotBacklog.grace(MarmotLimits.backlogGrace)
    /// How long the content of a `push-v1` trigger is held: its origin writes the same content for each
    /// message of a conversation of two, so that the same content within this time counts as a repeat.
    package var contentSpan = MarmotLimits.contentReplaySpan
    /// The pause between two wakes of a device; zero: none.
    package var pause = Duration.zero
    package var budgets = MarmotBudgets()
    /// The number of inbox relays: each may use an equal share of the budget for everything, so that a flood
    /// at one does not use up the others' shares.
    package var relays = 1

    /// - Throws: `.malformedKey` without a key, or with more than ``MarmotLimits/serverKeys``.
    package init(
        keys: [Secp256k1KeyPair], wake: MarmotWake = .silent, topic: String?, servesFCM: Bool
    ) throws(MarmotError) {
        guard (1...MarmotLimits.serverKeys).contains(keys.count) else { throw MarmotError(.malformedKey) }
        self.keys = keys
        self.wake = wake
        self.topic = topic
        self.servesFCM = servesFCM
    }
}
