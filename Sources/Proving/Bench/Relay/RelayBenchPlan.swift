import PushModel

/// What the whole relay is made to do.
package struct RelayBenchPlan: Sendable {
    /// Where the pushes go.
    package enum Sink: Sendable {
        /// A server that is there already, by its base URL and the PEM text of its authority; its CPU time is
        /// read when its process id is given.
        case standing(url: String, authority: String, pid: Int32?)
        /// A judging APNs in this process that sends every frame this much later, with Apple's settings.
        case simulated(roundTrip: Duration)
    }

    package enum Target: Sendable {
        /// A relay that is started for this and ended after it.
        case own(Sink, RelayPlan.Store)
        /// A running one, by its state directory. What it sends to is its own affair.
        case running(state: String)
    }

    package var target: Target
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String
    package var devicesPerRequest = 10
    /// Pushes a second; `nil`: as many as go.
    package var rate: Double?
    package var seconds = 10.0
    package var connections = 64
    package var devices = 10_000
    /// Registered beside the devices that are pushed to, to see what a registration costs in memory.
    package var extraRegistrations = 0
    /// Plaintext before it is sealed; 256 bytes are a short message with names and avatar.
    package var contentBytes = 256
    /// Added to the relay's environment, such as a preloaded library.
    package var environment: [String: String] = [:]

    package init(target: Target, executable: String, directory: String) {
        self.target = target
        self.executable = executable
        self.directory = directory
    }

    /// With no rate, so many pushes a second are made ready at most: more than any relay on two cores sends.
    static let mostPerSecond = 45_000.0
    /// So long a far service's arrivals are counted: a hundred round trips of 80 ms.
    static let drainSeconds = 8

    /// Sent before measuring, so that connections stand and caches are filled.
    static let warmUpPushes = 5_000
    static let registrationChunk = 20_000

    func check() throws(BenchError) {
        let isSane =
            (1...1000).contains(devicesPerRequest) && (rate ?? 1) > 0 && seconds > 0 && seconds <= 86_400
            && (1...10_000).contains(connections) && devices >= devicesPerRequest && extraRegistrations >= 0
            && (1...2_000).contains(contentBytes)
        guard isSane else { throw BenchError(.badPlan) }
    }
}
