import CoreMetrics
package import PushModel

/// What the core reports beside metrics: an operator's alert port hangs here. Must not steer anything.
package struct DeliveryObserver: Sendable {
    package var laneHalted: @Sendable (LaneName, Breaker.Cause, Reason) -> Void
    /// A halted lane sends everything again, because its service has accepted, or has answered as it answers
    /// good credentials alone.
    package var laneResumed: @Sendable (LaneName) -> Void
    /// A halted lane is halted no more, and that proves nothing: another origin came, or a reload has put
    /// another lane in its place.
    package var laneLoosened: @Sendable (LaneName) -> Void = { _ in }

    /// A lane has had something to send for a while, and no word of the push service; and has one again, or
    /// owes nothing any more.
    package var laneUnanswered: @Sendable (LaneName, Reason) -> Void
    package var laneAnswered: @Sendable (LaneName) -> Void

    /// Pushes that a lane never sent, for their custody had ended.
    package var custodyEnds: @Sendable (LaneName, Int) -> Void

    /// Each answer. Called under a lane's lock, so it must take no time and ask the lane nothing; `nil`:
    /// nobody listens, and nothing is made for anybody.
    package var attempted: (@Sendable (Attempt) -> Void)?

    package init(
        laneHalted: @escaping @Sendable (LaneName, Breaker.Cause, Reason) -> Void,
        laneResumed: @escaping @Sendable (LaneName) -> Void,
        laneUnanswered: @escaping @Sendable (LaneName, Reason) -> Void = { _, _ in },
        laneAnswered: @escaping @Sendable (LaneName) -> Void = { _ in },
        custodyEnds: @escaping @Sendable (LaneName, Int) -> Void = { _, _ in },
        attempted: (@Sendable (Attempt) -> Void)? = nil
    ) {
        self.laneHalted = laneHalted
        self.laneResumed = laneResumed
        self.laneUnanswered = laneUnanswered
        self.laneAnswered = laneAnswered
        self.custodyEnds = custodyEnds
        self.attempted = attempted
    }

    /// The push service's word has ended the registration that the store has under that digest. Not told of
    /// each repeat of that word.
    package var registrationEnded: @Sendable (LaneName, Digest16, Reason) -> Void = { _, _, _ in }

    /// Pushes that do not open, and so are sent by nobody; asked every few seconds, 0 when there are none.
    package var setAside: @Sendable (Int) -> Void = { _ in }

    /// By how much the wall clock is ahead of what is believed; zero when it is believed. Told at each look.
    package var clockDoubted: @Sendable (Duration) -> Void = { _ in }

    package static let none = DeliveryObserver(laneHalted: { _, _, _ in }, laneResumed: { _ in })

    func noApp(_ instance: ConfiguredName) {
        Counter(label: "sealbell_pushes_without_app_total", dimensions: [("instance", instance.text)])
            .increment()
    }

    func repeated(_ lane: LaneName) {
        Counter(label: "sealbell_pushes_repeated_total", dimensions: [("lane", lane.description)]).increment()
    }

    func refused(_ error: StoreError) {
        Counter(label: "sealbell_intake_refused_total", dimensions: [("code", error.code.rawValue)])
            .increment()
    }

    /// A call waits for room, or for the store.
    func held() { Counter(label: "sealbell_calls_held_total").increment() }

    /// Pushes that their origin's pace puts off.
    func paced(_ lane: LaneName) {
        Counter(label: "sealbell_pushes_paced_total", dimensions: [("lane", lane.description)]).increment()
    }

    /// Pushes of origins too far ahead of their pace, in calls of which the rest was taken.
    func withheld(_ instance: ConfiguredName, _ count: Int) {
        Counter(label: "sealbell_pushes_withheld_total", dimensions: [("instance", instance.text)])
            .increment(by: count)
    }

    /// Volatile pushes that had no room, or that a stop had no time for.
    func volatileDropped(_ lane: LaneName, _ count: Int) {
        Counter(label: "sealbell_volatile_dropped_total", dimensions: [("lane", lane.description)])
            .increment(by: count)
    }

    /// Calls of unknown fate, which are not sent again.
    func callsSpent(_ lane: LaneName, _ count: Int) {
        Counter(label: "sealbell_calls_unknown_total", dimensions: [("lane", lane.description)])
            .increment(by: count)
    }

    /// Pushes of unknown fate that were sent as often as they may be.
    func givenUp(_ lane: LaneName, _ count: Int) {
        Counter(label: "sealbell_pushes_unknown_total", dimensions: [("lane", lane.description)])
            .increment(by: count)
    }

    func custodyEnded(_ lane: LaneName, _ count: Int) {
        Counter(label: "sealbell_custody_ended_total", dimensions: [("lane", lane.description)]).increment(
            by: count)
        custodyEnds(lane, count)
    }
}
