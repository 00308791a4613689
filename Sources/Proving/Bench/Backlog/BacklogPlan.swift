package import PushModel

/// A lane that owes very many pushes, and one more that must not wait for them.
package struct BacklogPlan: Sendable {
    package enum Sink: Sendable {
        /// One in this process, which answers 200 to everything and knows doubles.
        case own
        /// A server that is there already, by its base URL and the PEM text of its authority.
        case standing(url: String, authority: String)
    }

    /// A directory of the trial's own: the outbox goes into it.
    package var directory: String
    package var sink = Sink.own
    /// Pushes that are owed before the first one leaves.
    package var owed = 600_000
    /// Who asked for them.
    package var origins = 100
    /// The class of those that come during the drain, each from an origin of its own.
    package var probeClass = PushClass.urgent
    /// From one probe's answer to the next probe.
    package var probeEvery: Duration = .milliseconds(20)
    package var bodyBytes = 400
    /// No probe may take longer from its request to its answer.
    package var goal: Duration = .seconds(1)

    package init(directory: String) { self.directory = directory }

    /// As a busy server's requests.
    static let pushesPerCall = 100
    static let callsTogether = 16
    static let probeLimit = 2_000
    /// Longer than any wait of the core: then the probe is lost.
    static let probePatience: Duration = .seconds(30)
    static let drainPatience: Duration = .seconds(600)

    func check() throws(BenchError) {
        let isSane =
            owed >= 10_000 && owed <= 1_900_000 && owed % Self.pushesPerCall == 0
            && (1...10_000).contains(origins) && (2...3_500).contains(bodyBytes) && goal > .zero
        guard isSane else { throw BenchError(.badPlan) }
    }
}
