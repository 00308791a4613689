package import Delivery
package import PushModel

/// One question to the running relay whose answer decides whether it is ready.
package struct HealthCheck: Sendable {
    package let name: NoteCode
    /// True when all is well; bounded by ``AdminFace``'s own deadline.
    package let isWell: @Sendable () async -> Bool

    package init(_ name: StaticString, isWell: @escaping @Sendable () async -> Bool) {
        self.name = NoteCode(name)
        self.isWell = isWell
    }
}

/// The same for one instance: whether its role can do its work.
package struct RoleCheck: Sendable {
    package let name: ConfiguredName
    /// Whether it can do nothing while a check fails.
    package let needsChecks: Bool
    /// As of a ``HealthCheck``.
    package let isWell: @Sendable () async -> Bool

    package init(
        _ name: ConfiguredName, needsChecks: Bool, isWell: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.name = name
        self.needsChecks = needsChecks
        self.isWell = isWell
    }
}

/// One lane as an operator sees it: only counts, no address, no origin.
package struct LaneReport: Sendable, Hashable {
    package enum State: String, Sendable, Hashable, CaseIterable {
        /// A connection to the push service is open.
        case open
        /// Nothing is against it; its provider counts no connections.
        case ready
        /// No push has asked for a connection yet, so nobody knows whether the push service answers.
        case untried
        /// The push service was connected, and no push needs it now.
        case idle
        /// Pushes of it wait in the store.
        case waiting
        /// Connections fail, and none is open.
        case unreachable
        case unanswered, halted
    }

    package var lane: LaneName
    package var state: State
    package var inMemory: Int
    package var parked: Int
    /// Requests that wait for the push service's answer.
    package var inFlight: Int
    /// Open connections to the push service; `nil` where its provider counts none.
    package var connections: Int?
    /// The push service's last answer, if that was no acceptance, from the closed list of reasons.
    package var reason: Reason?
    /// When that was; `nil` when it is not remembered.
    package var reasonAt: UnixTime?

    package init(
        _ lane: LaneName, _ state: State, inMemory: Int, parked: Int, inFlight: Int = 0,
        reason: Reason? = nil
    ) {
        self.lane = lane
        self.state = state
        self.inMemory = inMemory
        self.parked = parked
        self.inFlight = inFlight
        self.reason = reason
    }
}

/// A listener's certificate in force.
package struct CertificateReport: Sendable, Hashable {
    package var listener: ConfiguredName
    /// Days that are left, a begun one counted; 0 when it has ended.
    package var days: Int

    package init(_ listener: ConfiguredName, days: Int) {
        self.listener = listener
        self.days = days
    }
}

/// How an instance that goes to its peers by itself hears them.
package struct IngressReport: Sendable, Hashable {
    package var instance: ConfiguredName
    /// What they are, in the plural: `inbox relays`.
    package var peers: NoteCode
    package var connected: Int
    /// How many this process should be connected to.
    package var known: Int
    /// Whether what senders send would be heard.
    package var hears: Bool
    /// What is received and waits to be handled.
    package var queued: Int
    /// What is missing, as a short phrase; `nil`: nothing.
    package var lacks: NoteCode?

    package init(
        _ instance: ConfiguredName, peers: NoteCode, connected: Int, of known: Int, hears: Bool,
        queued: Int = 0, lacks: NoteCode? = nil
    ) {
        self.instance = instance
        self.peers = peers
        self.connected = connected
        self.known = known
        self.hears = hears
        self.queued = queued
        self.lacks = lacks
    }
}

/// The last reload.
package struct ReloadReport: Sendable, Hashable {
    package var at: UnixTime
    /// Why the former configuration stays in force; `nil`: it does not.
    package var refusal: String?

    /// - Parameter refusal: an error's code.
    package init(at: UnixTime, refusal: String?) {
        self.at = at
        self.refusal = refusal
    }
}

/// What `/status` and the dashboard show.
package struct StatusReport: Sendable {
    package var version: NoteCode
    package var startedAt: UnixTime
    package var lanes: [LaneReport]
    /// What is owed; `nil` when the store does not answer.
    package var outboxRows: Int?
    package var outboxBytes: Int?
    /// When the oldest owed push was accepted; `nil` when nothing is owed, or the store does not tell.
    package var oldestAt: UnixTime?
    /// Origins that have signed up, over all instances; `nil` when the store does not tell.
    package var origins: Int?
    package var alerts: [StandingAlert] = []
    package var certificates: [CertificateReport] = []
    /// Listeners where a trusted proxy has named clients in a way that cannot be read, and so many requests
    /// of these there were.
    package var unreadClients: [(listener: ConfiguredName, requests: Int)] = []
    /// `nil` when there was none since the start.
    package var reload: ReloadReport?
    /// Answers of push services that were no acceptances, the latest first.
    package var refusals: [Attempt] = []
    /// Of instances that go to their peers by themselves.
    package var ingresses: [IngressReport] = []
    /// The last hour, oldest first, and the moment that it ends at.
    package var history: [FigureSample] = []
    package var instant: ContinuousClock.Instant?

    package init(
        version: NoteCode, startedAt: UnixTime, lanes: [LaneReport], outboxRows: Int?, outboxBytes: Int?
    ) {
        self.version = version
        self.startedAt = startedAt
        self.lanes = lanes
        self.outboxRows = outboxRows
        self.outboxBytes = outboxBytes
    }
}
