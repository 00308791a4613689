import StatusPush
import WakuIngress

/// Bounds of hosting beside those of the role and of the link to the node (docs/limits.md).
struct StatusHostLimits: Sendable {
    /// Kept connections to one peer.
    static let connections = 8

    /// Rows of followed topics that are read at once.
    var rowsPerPage = 1_000
    /// How often topics are looked for that another process follows: a person who has just registered is
    /// asked about within seconds.
    var lookEvery = Duration.seconds(1)
    /// After a store that did not answer.
    var storeRest = Duration.seconds(1)
    /// Topics whose keys are in memory: some 200 bytes each.
    var keptKeys = 4_096
    /// How long keys are in memory: so much later than their row they are gone.
    var keptFor = Duration.seconds(60)
    /// How long a report waits for first attempts.
    var report = StatusLimits.reportWithin
    /// How long a gateway is waited for: less than senders wait for the reply.
    var gateway = Duration.seconds(2)
    /// When an operator is told that it takes nothing.
    var gatewayFaults = FaultRunLimits()
}

extension RelaySpans {
    private enum StatusHost: SpanKey { static let standard = StatusHostLimits() }

    /// Deadlines and bounds of a Status instance.
    var statusHost: StatusHostLimits {
        get { self[StatusHost.self] }
        set { self[StatusHost.self] = newValue }
    }
}
