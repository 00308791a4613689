package import Delivery
import PushModel

/// An outage of a push service, in simulated time.
package struct OutagePlan: Sendable {
    /// How the service is out.
    package enum Fault: String, Sendable, CaseIterable {
        /// No connection stands, so nothing can be sent.
        case unreachable
        /// It answers 503 to everything.
        case refusing
    }

    /// A directory of the trial's own: the outbox goes into it.
    package var directory: String
    package var fault = Fault.unreachable
    /// Pushes a second of simulated time.
    package var rate = 1_000
    package var minutes = 10.0
    /// Who asks; the pushes of a second come from all of them in turn.
    package var origins = 50
    /// Bytes of each push's message, as it would go to a device.
    package var bodyBytes = 300
    /// Streams that the service has free, once it is there.
    package var streams = 1_000
    package var limits = DeliveryLimits()
    /// More than this over what was resident at the start is a failure; `nil`: not judged.
    package var residentLimitMiB: Double?
    /// Real time for the whole; a trial that stands still ends by it.
    package var patience: Duration = .seconds(1_800)

    package init(directory: String) { self.directory = directory }

    /// Pushes of one call, as one request of a server brings.
    static let pushesPerCall = 10

    var seconds: Int { Int(minutes * 60) }
    var pushes: Int { rate * seconds }

    func check() throws(BenchError) {
        let isSane =
            rate > 0 && rate % Self.pushesPerCall == 0 && rate <= 100_000 && (1...3_600).contains(seconds)
            && pushes <= 1_900_000 && (1...100_000).contains(origins) && (2...3_500).contains(bodyBytes)
            && (1...100_000).contains(streams)
        guard isSane else { throw BenchError(.badPlan) }
    }
}
