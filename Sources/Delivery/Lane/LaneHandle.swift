package import PushModel

/// A lane as the rest of the core sees it, whatever its provider.
typealias LaneHandle = LaneAdmission & LaneCounting & LaneRunning & LaneReturn & LaneTicking

/// Where pushes come into a lane. Asked by the intake, by the pair's other lane, and by one whose claim has
/// brought some.
protocol LaneAdmission: AnyObject, Sendable {
    var name: LaneName { get }
    /// - Parameter origin: whose turn the push would take (``OwedPush/origin``).
    /// - Parameter address: as ``LaneQueue/Entry/address``; asked for only when there is no room.
    func wouldHold(_ pushClass: PushClass, origin: Digest16, address: () -> Int) -> Bool
    /// `nil`: no reply should wait for a first attempt here.
    func expectedWait() -> Duration?
    /// - Parameter parked: the classes of pushes for which memory had no room.
    func admit(_ entries: [LaneQueue.Entry], parked: [PushClass])
    /// Pushes of this lane that the store holds as parked and that their origin's pace has put off until
    /// then.
    func putOff(_ pushes: [(pushClass: PushClass, due: UnixTime)])
    /// Pushes that the store has just given out. Those that this lane has under way continue under the
    /// present names of their rows.
    ///
    /// - Parameter term: of the lease, when it was asked for them.
    /// - Returns: the others.
    func keep(_ pushes: [OwedPush], term: Int) -> [OwedPush]
    /// A push that left for the pair's other lane ends with the answer that it got here.
    func end(_ entry: LaneQueue.Entry, by word: Answer)
}

/// Where a push comes back to be tried again. Called by the settler.
protocol LaneReturn: AnyObject, Sendable {
    func comeBack(_ entry: LaneQueue.Entry, isOurs: Bool)
}

/// A lane's share of the core's tick. Called by the service's loop.
protocol LaneTicking: AnyObject, Sendable {
    /// - Parameter seconds: between ticks while one is needed.
    func tick(seconds: Double)
    /// Whether the next tick could find something to do here. A lane that comes to need it wakes
    /// ``DeliveryCore/ticks``.
    var needsTick: Bool { get }
}

/// What a lane is told about the store, and what it gives back. Called by the service's loops, the settler
/// and ``Reclaim``.
protocol LaneCounting: AnyObject, Sendable {
    /// The store now holds one more push of this lane as parked.
    func landed(_ pushClass: PushClass, due: UnixTime)
    /// The store's own count of this lane's parked pushes.
    ///
    /// - Parameter hasGained: some may have come that the lane has not heard of.
    /// - Parameter notedBefore: ``noted`` before the store was asked.
    func correct(parked: Int, hasGained: Bool, notedBefore: Int)
    /// How many the lane has ever been told of.
    var noted: Int { get }
    /// Drops those of these pushes that are held here, because their registrations have ended.
    func revoke(_ pushes: Set<PushID>)
    /// Gives all durable pushes back to the store, and takes none from it until told otherwise.
    func handBack(_ handsBack: Bool)
    /// Whether a durable push is under way whose settlement the settler has not got yet.
    var isSending: Bool { get }
}

/// A lane's life, from a set-up to its end. Asked by the service and by the operator.
protocol LaneRunning: AnyObject, Sendable {
    func snapshot() -> LaneSnapshot
    func run() async
    /// Stops with the process: requests under way are waited for, for ``DeliveryLimits/drain``.
    func stop()
    /// Ends as a lane that a reload replaces or takes away.
    func giveWay()
    /// Tries at once the pushes that wait for their next attempt, because an operator has removed the cause.
    func hurry()
    /// Sends one message beside the queue, whatever halts the lane. It is not owed, nothing is settled, and
    /// no registration is blamed.
    func testPush(_ message: ProviderMessage) async -> TestPushResult
}

/// What an operator may see of a lane.
package struct LaneSnapshot: Sendable {
    package var lane: LaneName
    package var isHalted: Bool
    package var haltedFor: Breaker.Cause?
    /// The literal reason of the last answer that was no acceptance, until the next one.
    package var reason: Reason?
    package var inMemory: Int
    package var parked: Int
    package var inFlight: Int
    /// There has been something to send for a while, and no answer from the push service.
    package var isUnanswered: Bool
    /// What the provider has counted.
    package var figures: [ProviderFigure] = []
    /// Of the authorities that pushes name: how many are halted, slowed or silent.
    package var heldDestinations = 0
    /// Addresses that the service has refused for themselves and not accepted since.
    package var waitingAddresses = 0
}
