import CoreMetrics
package import PushModel

/// What the core reports beside metrics; alerts are made from it. It must not steer anything.
package struct DeliveryObserver: Sendable {
    package var laneHalted: @Sendable (LaneName, Breaker.Cause, Reason) -> Void
    /// A halted lane sends everything again, because its service has accepted a push, or has given an answer
    /// that only a good credential gets.
    package var laneResumed: @Sendable (LaneName) -> Void
    /// A halt has ended without a proof that its cause is gone: another origin came, or a reload has replaced
    /// the lane.
    package var laneLoosened: @Sendable (LaneName) -> Void = { _ in }

    /// A lane has had something to send for a while without an answer from the push service; and the end of
    /// that: an answer, or nothing left to send.
    package var laneUnanswered: @Sendable (LaneName, Reason) -> Void
    package var laneAnswered: @Sendable (LaneName) -> Void

    /// Pushes that a lane did not send, because their custody had ended.
    package var custodyEnds: @Sendable (LaneName, Int) -> Void

    /// Each answer. Called under a lane's lock, so it must take no time and ask the lane nothing; `nil`:
    /// nobody listens, and nothing is made for anybody.
    package var attempted: (@Sendable (Attempt) -> Void)?

    /// What a push to a registration met, by the digest under which the store has it. Called under a lane's
    /// lock for each answer, so it must be quick and ask the lane nothing; `nil`: nobody counts.
    package var counted: (@Sendable (Digest16, RegistrationEvent, Reason, UnixTime) -> Void)?

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

    /// The push service's word has ended the registration that the store has under that digest. Repeats of
    /// that answer are not reported.
    package var registrationEnded: @Sendable (LaneName, Digest16, Reason) -> Void = { _, _, _ in }

    /// Pushes whose rows do not open and that cannot be sent; asked every few seconds, 0 when there are none.
    package var setAside: @Sendable (Int) -> Void = { _ in }

    /// By how much the wall clock is ahead of what is believed; zero when it is believed. Reported at each
    /// look.
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

    /// Volatile pushes for which there was no room, or no time during a stop.
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
