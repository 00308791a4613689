import PushModel
package import Secp256k1Keys

/// What becomes of wraps that waited on a relay while this server was away (docs/conformance/marmot.md).
package enum MarmotBacklog: Sendable, Hashable {
    /// They are lost on purpose: a hint that is hours old wakes nobody to good.
    case liveOnly
    /// Taken when the trigger itself says that it is no older. Its time is the sender's word, and true in
    /// what our own origin writes (§9.11); a trigger whose time was drawn at random is as lost as with
    /// `liveOnly`.
    case grace(Duration)
}

/// So many in any minute and in any hour; 0: no limit.
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

/// The budgets of docs/conformance/marmot.md. They bound what an anonymous sender can make this server do.
///
/// With several processes on one store, those of keys are divided among them; that for everything bounds what
/// one process does, and each has it whole (decision 0039).
package struct MarmotBudgets: Sendable {
    /// Wraps that are decrypted, and attempts at a token: each is a multiplication on the curve or two. The
    /// deployed server stops at 600 a minute, which ten junk wraps a second use up for everybody; what a
    /// server can do, ``everything(cpuPercent:of:)`` tells.
    package var everything = RateRule(perMinute: 60_000, perHour: 3_600_000)
    /// By the author of a trigger: the seed text asks for it. One-time authors meet it never. One message in
    /// a group of 600 is ten triggers of one author: a message a second.
    package var sender = RateRule(perMinute: 600, perHour: 20_000)
    /// By encrypted token, as the deployed server.
    package var encryptedToken = RateRule(perMinute: 240, perHour: 5_000)
    /// By device token: a device has one encrypted token for each of its groups.
    package var deviceToken = RateRule(perMinute: 240, perHour: 5_000)
    /// Keys that each of these, and each memory of repeats, holds: at some 100 bytes, 10 MB each.
    package var keys = 100_000

    package init() {}

    /// A rule for authors: in an hour as much as in 33 minutes, so that a conversation may be lively and not
    /// for ever.
    package static func sender(perMinute: Int) -> RateRule {
        RateRule(perMinute: perMinute, perHour: perMinute * 100 / 3)
    }

    /// What a part of one core opens.
    ///
    /// - Parameters:
    ///   - cpuPercent: of one core, 1 to 100.
    ///   - attempt: CPU time of one attempt at a token; ``AttemptCost/measure()`` tells it.
    package static func everything(cpuPercent: Int, of attempt: Duration) -> RateRule {
        let minute = Duration.seconds(60) * cpuPercent / 100
        // A rule of 0 is none, and what counts does so in 32 bits.
        let perMinute = min(max(1, Int(minute / max(attempt, .nanoseconds(1_000)))), Int(UInt32.max) / 60)
        return RateRule(perMinute: perMinute, perHour: 60 * perMinute)
    }
}

/// How one instance serves: its keys and what an operator may choose.
package struct MarmotServing: Sendable {
    /// Newest first; the old one stands beside the new until clients have encrypted their tokens anew.
    package let keys: [Secp256k1KeyPair]
    package var formats = Set(TokenFormat.allCases)
    package var wake: MarmotWake
    /// The app's bundle id; `nil`: tokens of APNs lead nowhere.
    package var topic: String?
    package var servesFCM: Bool
    package var backlog = MarmotBacklog.grace(MarmotLimits.backlogGrace)
    /// How long the content of a `push-v1` trigger is held: its origin writes the same for each message of a
    /// conversation of two, so that what comes in again within it is taken for the same.
    package var contentSpan = MarmotLimits.contentReplaySpan
    /// Between two wakes of a device; zero: none.
    package var pause = Duration.zero
    package var budgets = MarmotBudgets()
    /// Inbox relays: each may use an equal share of the budget for everything, so that a flood at one leaves
    /// the others theirs.
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
