import PushModel

/// Collects the messages of a burst, so that they wake the others once (spec, "Rate Limiting": 1 to 2
/// seconds). It holds no timer: messages and moments go in, groups to notify come out.
public struct BurstWindow: Sendable {
    private var open: [[UInt8]: ContinuousClock.Instant] = [:]

    /// Nothing is collected yet.
    public init() {}

    /// When ``due(at:)`` should next be called; `nil` when nothing is collected.
    public var nextDeadline: ContinuousClock.Instant? { open.values.min() }

    /// A message went into the group. The first opens the window; the others fall into it and do not hold it
    /// open.
    ///
    /// - Returns: true when the group is to be notified at once, for want of room.
    public mutating func sent(
        in group: [UInt8], at now: ContinuousClock.Instant, using generator: inout some RandomNumberGenerator
    ) -> Bool {
        guard open[group] == nil else { return false }
        guard open.count < MarmotLimits.openBursts else { return true }
        let spread = generator.span(upTo: MarmotLimits.burstMost - MarmotLimits.burstLeast)
        open[group] = now + MarmotLimits.burstLeast + spread
        return false
    }

    /// Groups whose window has closed: bytes of their ids, the first to close first.
    public mutating func due(at now: ContinuousClock.Instant) -> [[UInt8]] {
        let due = open.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for group in due { open[group] = nil }
        return due
    }

    /// The group with these bytes as its id was left: nobody is to be woken for it.
    public mutating func forget(_ group: [UInt8]) { open[group] = nil }
}
