import PushModel
import Synchronization

/// What the lanes share: the store, the settler, replies that wait, the lease, the directory of lanes.
final class DeliveryCore: Sendable {
    /// What can be exchanged while running, as a whole.
    struct Table: Sendable {
        let apps: AppDirectory
        let lanes: [LaneName: any LaneHandle]
        /// The lanes of direct providers, once more.
        var volatileLanes: [LaneName: any VolatileLane] = [:]
        /// Lanes that a reload replaced and that still send what is volatile.
        var leaving: [any LaneHandle] = []
        var stamps: [LaneName: Int] = [:]
        /// New lanes give durable pushes back to the store, as all others do (``Reclaim``).
        var handsBack = false
        /// The lanes have been stopped, and no more are made.
        var isStopping = false
        let overrides: [ConfiguredName: Override]
        var lastChoices = LastFound<ConfiguredName, AppDirectory.Choices>()
        var lastLane = LastFound<LaneName, (any LaneHandle)?>()
        var lastOverride = LastFound<ConfiguredName, Override?>()

        /// The apps of that instance.
        mutating func choices(of instance: ConfiguredName) -> AppDirectory.Choices {
            lastChoices.value(of: instance) { [apps] in apps.choices(of: instance) }
        }

        mutating func lane(_ name: LaneName) -> (any LaneHandle)? {
            lastLane.value(of: name) { [lanes] in lanes[name] }
        }

        /// `nil`: the instance takes all answers as they are.
        mutating func override(of instance: ConfiguredName) -> Override? {
            lastOverride.value(of: instance) { [overrides] in overrides[instance] }
        }
    }

    /// How an instance takes answers otherwise than they are.
    ///
    /// A structure: a bare function is wrapped anew, in a block of memory, whenever a generic type or
    /// function takes or returns it.
    struct Override: Sendable {
        /// `nil`: it takes that answer as it is.
        let outcome: @Sendable (Answer) -> Outcome?
    }

    /// What lanes take into memory.
    let claims: any LaneClaims
    /// Which owed pushes are ours.
    let ownership: any Ownership
    let registry: any Registry
    let limits: DeliveryLimits
    let world: World
    let journal: Journal
    let firstAttempts: FirstAttempts
    let lease: Lease
    let membership: Membership
    let settler: Settler
    let volatile: VolatileOutbox
    /// What has ended with its registration, and may still be on its way into a lane.
    let revoked = RevokedPushes()
    let reclaim = Reclaim()
    let hold: Hold
    let pacer: Pacer
    let tolls: InstanceTolls
    /// When the tick comes: lanes, and replies that wait, wake it.
    let ticks: RegularLooks
    let table: Mutex<Table>
    let observer: DeliveryObserver
    /// The clock by which custody and records end.
    let clock: DoubtedClock

    init(
        outbox: any Outbox, registry: any Registry, limits: DeliveryLimits, world: World, journal: Journal,
        observer: DeliveryObserver
    ) {
        claims = outbox
        ownership = outbox
        self.registry = registry
        self.limits = limits
        self.world = world
        self.journal = journal
        self.observer = observer
        clock = registry.clock ?? DoubtedClock(world)
        firstAttempts = FirstAttempts(limits: limits)
        hold = Hold(limits: limits, world: world)
        pacer = Pacer(limits: limits, start: world.instant())
        volatile = VolatileOutbox(limits: limits, world: world)
        lease = Lease(store: outbox, limits: limits, world: world, journal: journal)
        membership = Membership(store: outbox, limits: limits, world: world, journal: journal)
        tolls = InstanceTolls(membership, world)
        ticks = RegularLooks(world)
        table = Mutex(Table(apps: AppDirectory([]), lanes: [:], overrides: [:]))
        settler = Settler(store: outbox, limits: limits, world: world, journal: journal)
        outbox.ended.hear { [weak self] in self?.revoke($0) }
    }

    /// Pushes have ended with their registrations: lanes no longer send them, and replies that wait for their
    /// first outcome are told that they will not be sent.
    private func revoke(_ ids: [PushID]) {
        revoked.note(ids, at: world.instant())
        let all = Set(ids)
        for lane in ticking { lane.revoke(all) }
        for id in ids { firstAttempts.end(id) }
        journal.note("pushes ended with their registrations", [.count: ids.count])
    }

    /// Lanes that this process has.
    var laneNames: [LaneName] { table.withLock { Array($0.lanes.keys) } }

    func lane(_ name: LaneName) -> (any LaneHandle)? { table.withLock { $0.lane(name) } }

    func volatileLane(_ name: LaneName) -> (any VolatileLane)? {
        table.withLock { $0.volatileLanes[name] }
    }

    /// Every lane that gets the tick.
    var ticking: [any LaneHandle] { table.withLock { Array($0.lanes.values) + $0.leaving } }

    /// Whether the next tick could find something to do: the tick rests otherwise.
    var needsTick: Bool { firstAttempts.isWaitedFor || ticking.contains(where: \.needsTick) }

    /// Of pushes that the store has just given out, those whose requests are under way are not sent beside
    /// these (``RowsUnderWay``). A push may be under way in a lane that has left, or in the pair's other one.
    ///
    /// - Parameter term: of the lease, when the store was asked for them.
    /// - Returns: the others.
    func keepUnderWay(_ pushes: [OwedPush], term: Int) -> [OwedPush] {
        guard !pushes.isEmpty else { return [] }
        return ticking.reduce(pushes) { others, lane in lane.keep(others, term: term) }
    }

    /// Makes every lane, including those made from now on, give durable pushes back to the store, or ends
    /// that.
    func handBack(_ handsBack: Bool) {
        let lanes = table.withLock { table in
            table.handsBack = handsBack
            return Array(table.lanes.values) + table.leaving
        }
        for lane in lanes { lane.handBack(handsBack) }
    }

    /// A lane has ended.
    func left(_ lane: any LaneHandle) { table.withLock { $0.leaving.removeAll { $0 === lane } } }

    func override(_ answer: Answer, of instance: ConfiguredName) -> Outcome {
        table.withLock { $0.override(of: instance) }?.outcome(answer) ?? answer.outcome
    }

    func laneHalted(_ lane: LaneName, _ cause: Breaker.Cause, _ reason: Reason) {
        journal.note(
            "lane halted",
            [
                .lane: lane, .reason: reason,
                .code: cause == .credential ? ErrorCode("credential") : ErrorCode("targets")
            ], level: .error)
        observer.laneHalted(lane, cause, reason)
    }

    func laneUnanswered(_ lane: LaneName, _ reason: Reason) {
        journal.note("lane unanswered", [.lane: lane, .reason: reason], level: .error)
        observer.laneUnanswered(lane, reason)
    }

    func laneAnswered(_ lane: LaneName) {
        journal.note("lane answered again", [.lane: lane])
        observer.laneAnswered(lane)
    }

    /// A reload took a halted lane away, or put another in its place, which may halt in its turn.
    func haltedLaneLeft(_ lane: LaneName) {
        journal.note("halted lane has left", [.lane: lane])
        observer.laneLoosened(lane)
    }

    /// Another origin came, by whose pushes the lane learns whether what halted it holds.
    func laneReopened(_ lane: LaneName) {
        journal.note("lane tries again", [.lane: lane])
        observer.laneLoosened(lane)
    }

    func laneResumed(_ lane: LaneName) {
        journal.note("lane resumed", [.lane: lane])
        observer.laneResumed(lane)
    }
}
