package import PushModel
import ServiceLifecycle
import Synchronization

/// The delivery core: it owes the pushes that were accepted, and sends them.
///
/// A `Service`: it renews the lease, runs the lanes, settles, and on a graceful stop lets requests under
/// way end, settles them, and leaves the rest to the store.
package final class DeliveryService: Service {
    /// A lane and what stands behind it.
    package struct LaneSpec: Sendable {
        let make: @Sendable (DeliveryCore, _ handsBack: Bool) -> LaneHandles
        package let name: LaneName
        package let credential: Credential
        let stamp: Int
        /// Sends messages one behind the other beside every lane and store, to see what comes of them: for
        /// who has no relay at hand. One answer for each.
        package let trial: @Sendable ([ProviderMessage], World, DeliveryLimits) async -> [TestPushResult]

        /// Lanes of one credential share the one `Credential` value.
        ///
        /// - Parameters:
        ///   - stamp: any number that is the same while configuration and credentials are; a lane whose stamp
        ///     changes at a reload is replaced.
        ///   - identity: a digest of credential, project and environment, the same in every process; when it
        ///     is another than that under which something was last accepted, no registration is blamed until
        ///     something is. `nil`: nobody says.
        package init(
            _ provider: some Provider, credential: Credential, stamp: Int = 0, identity: Secret? = nil
        ) {
            name = provider.lane
            self.credential = credential
            self.stamp = stamp
            trial = { await provider.tryEach($0, world: $1, limits: $2) }
            make = {
                LaneHandles(
                    Lane(
                        provider: provider, credential: credential, identity: identity, core: $0,
                        handsBack: $1))
            }
        }

        /// The same for a provider that is direct: its lane takes volatile pushes too.
        package init(
            _ provider: some DirectProvider, credential: Credential, stamp: Int = 0, identity: Secret? = nil
        ) {
            name = provider.lane
            self.credential = credential
            self.stamp = stamp
            trial = { await provider.tryEach($0, world: $1, limits: $2) }
            make = {
                LaneHandles(
                    Lane(
                        direct: provider, credential: credential, identity: identity, core: $0,
                        handsBack: $1))
            }
        }
    }

    /// What is exchanged as a whole at start and at a reload.
    package struct Setup: Sendable {
        package var apps: AppDirectory
        package var lanes: [LaneSpec]
        package var overrides: [ConfiguredName: @Sendable (Answer) -> Outcome?]

        package init(
            apps: AppDirectory, lanes: [LaneSpec],
            overrides: [ConfiguredName: @Sendable (Answer) -> Outcome?]
        ) {
            self.apps = apps
            self.lanes = lanes
            self.overrides = overrides
        }

        /// Nothing is served until another one is adopted.
        package static let none = Setup(apps: AppDirectory([]), lanes: [], overrides: [:])
    }

    private let core: DeliveryCore
    /// Rung when the lanes' counts are to be set right.
    private let recountDue = Bell()
    private let isClockDoubted = Atomic<Bool>(false)
    private let starts: AsyncStream<any LaneHandle>
    private let startLane: AsyncStream<any LaneHandle>.Continuation
    /// For roles whose pushes the store keeps.
    package let intake: Intake
    /// For roles that forbid keeping anything.
    package let volatileIntake: VolatileIntake

    package init(
        outbox: any Outbox, registry: any Registry, setup: Setup = .none,
        limits: DeliveryLimits = DeliveryLimits(), world: World, journal: Journal,
        observer: DeliveryObserver = .none
    ) {
        core = DeliveryCore(
            outbox: outbox, registry: registry, limits: limits, world: world, journal: journal,
            observer: observer)
        intake = Intake(core: core, custody: outbox)
        volatileIntake = VolatileIntake(core: core)
        // Bounded by the number of lanes that configurations name; a reload is a person's doing.
        (starts, startLane) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
        adopt(setup)
    }

    /// Puts a new set-up in force: new lanes start, lanes no longer named stop and leave their pushes to the
    /// store, lanes named again with the same stamp keep running. After a stop it does nothing.
    package func adopt(_ setup: Setup) {
        let (fresh, gone) = core.table.withLock { table -> ([any LaneHandle], [any LaneHandle]) in
            guard !table.isStopping else { return ([], []) }
            var lanes: [LaneName: any LaneHandle] = [:]
            var volatileLanes: [LaneName: any VolatileLane] = [:]
            var fresh: [any LaneHandle] = []
            for spec in setup.lanes {
                if let kept = table.lanes[spec.name], table.stamps[spec.name] == spec.stamp {
                    lanes[spec.name] = kept
                    volatileLanes[spec.name] = table.volatileLanes[spec.name]
                    continue
                }
                let handles = spec.make(core, table.handsBack)
                lanes[spec.name] = handles.lane
                volatileLanes[spec.name] = handles.volatile
                fresh.append(handles.lane)
            }
            let gone = table.lanes.filter { lanes[$0.key] !== $0.value }.map(\.value)
            table = DeliveryCore.Table(
                apps: setup.apps, lanes: lanes, volatileLanes: volatileLanes, leaving: table.leaving + gone,
                stamps: Dictionary(setup.lanes.map { ($0.name, $0.stamp) }, uniquingKeysWith: { $1 }),
                handsBack: table.handsBack,
                overrides: setup.overrides.mapValues(DeliveryCore.Override.init))
            return (fresh, gone)
        }
        core.ticks.wake()
        core.tolls.keep(setup.apps.names)
        for lane in gone { lane.giveWay() }
        core.table.withLock { table in
            // A stop has seen the new lanes in the table; a stop that comes later finds them running.
            guard !table.isStopping else { return }
            for lane in fresh { startLane.yield(lane) }
        }
    }

    package func snapshot() -> [LaneSnapshot] {
        core.table.withLock { Array($0.lanes.values) }.map { $0.snapshot() }
            .sorted { $0.lane.description < $1.lane.description }
    }

    /// Who shares the store with this process.
    package var membership: Membership { core.membership }

    /// What callers without an origin have used of an instance's allowances; it survives a reload.
    package func tolls(of instance: ConfiguredName) -> Tolls { core.tolls.tolls(of: instance) }

    /// Volatile pushes that are owed now.
    package var volatileOwed: Int { core.volatile.owed }

    /// Why the store takes no commits; `nil` while it does. A store that can still be read may say so late.
    package var storeFault: StoreError.Code? { core.lease.storeFault }

    /// What custody and records end by.
    package var clock: DoubtedClock { core.clock }

    /// Settlements that wait for the store.
    package var settleBacklog: Int { core.settler.backlog }

    /// Outcomes that the store has refused for longer than a lease's renewal takes, though it may take
    /// everything else; `nil` while it takes them.
    package var unsettled: UnsettledOutcomes? { core.settler.unsettled }

    /// Sends one message by a lane, beside what it owes, for an operator who wants to see the answer.
    ///
    /// - Returns: `nil` when there is no such lane.
    package func testPush(_ lane: LaneName, _ message: ProviderMessage) async -> TestPushResult? {
        await core.lane(lane)?.testPush(message)
    }

    /// Tries at once the pushes of a lane that wait for their next attempt.
    package func hurry(_ lane: LaneName) { core.lane(lane)?.hurry() }

    package func run() async throws {
        // Starts at once, because replies depend on it and the first renewal may be slow.
        async let _: Void = tickLoop()
        try await core.lease.renew()
        // Comes before anything can expire: from here on, what the store knows about time outlives this
        // process.
        try await core.clock.keep()
        await core.membership.renew()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                let core = self.core
                await core.settler.run(
                    Settler.Hearers(
                        settled: { core.hold.stir() },
                        known: { core.firstAttempts.resolve($0, $1) },
                        landed: { core.lane($0)?.landed($1, due: $2) }))
            }
            group.addTask {
                await self.core.lease.run(recovered: { self.core.hold.stir() }) {
                    self.core.membership.beat()
                }
            }
            group.addTask { await self.core.hold.run() }
            group.addTask { await self.core.membership.run() }
            group.addTask { await self.recountLoop() }
            group.addTask { await self.sweepLoop() }
            group.addTask { await self.core.reclaimLoop() }
            await self.runLanes()
            core.settler.close()
            // The settler is the one that must end by itself; the others are stopped once it has.
            await group.next()
            group.cancelAll()
        }
        core.firstAttempts.close()
    }

    /// Lanes run until a graceful stop, and end when what they sent is answered.
    private func runLanes() async {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { lanes in
                for await lane in starts {
                    lanes.addTask {
                        await lane.run()
                        self.core.left(lane)
                    }
                }
            }
        } onCancelOrGracefulShutdown: {
            let lanes = self.core.table.withLock { table in
                table.isStopping = true
                return Array(table.lanes.values) + table.leaving
            }
            for lane in lanes { lane.stop() }
            self.startLane.finish()
        }
    }

    /// Takes over, at start and with each look, what dead processes left in lanes that this one has; it waits
    /// in the store for these lanes. The lanes keep running: with hundreds of thousands of rows to take over,
    /// a new call must not wait for them, nor the first of them for the last.
    private func takeOver() async throws(StoreError) {
        var taken = 0
        // Ends, because each round takes rows that no later round finds again: their owner is then alive.
        while true {
            let moved = try await core.ownership.takeOver(core.laneNames, limit: core.limits.sweepRows)
            taken += moved
            if taken > 0 { _ = try await recount(haveGained: true) }
            if moved < core.limits.sweepRows { break }
        }
        if taken > 0 { core.journal.note("took over owed pushes", [.count: taken]) }
    }

    /// Pushes in lanes that this process does not have, or no longer has, are left to a process that has
    /// them.
    private func letGo() async throws(StoreError) {
        // Ends, because a released row is no longer ours.
        while try await core.ownership.letGo(besides: core.laneNames, limit: core.limits.sweepRows)
            == core.limits.sweepRows
        {}
        let load = try await recount()
        for (name, parked) in load.lanes where core.lane(name) == nil {
            core.journal.note("owed pushes without a lane", [.lane: name, .count: parked], level: .warning)
        }
    }

    /// Ticks while a lane or a reply needs it, and seldom otherwise (decision 0145).
    private func tickLoop() async {
        let (tick, rest) = (core.limits.tick, max(core.limits.tick, core.limits.restTick))
        let seconds = Double(tick.wholeMilliseconds) / 1_000
        var recountsAt = core.world.instant() + tick * core.limits.recountTicks
        while true {
            await core.ticks.next(every: tick) { core.needsTick ? nil : rest }
            guard !Task.isCancelled else { return }
            let now = core.world.instant()
            core.membership.tick()
            core.firstAttempts.tick(now)
            for lane in core.ticking { lane.tick(seconds: seconds) }
            guard now >= recountsAt else { continue }
            recountsAt = now + tick * core.limits.recountTicks
            recountDue.ring()
        }
    }

    /// Runs beside the tick, which must not wait, because replies and retries depend on it. A lane finds here
    /// what the lane that it replaced has given back.
    private func recountLoop() async {
        while !Task.isCancelled {
            await recountDue.wait()
            guard !Task.isCancelled else { return }
            do throws(StoreError) {
                _ = try await recount()
            } catch {
                core.journal.note("outbox not counted", [.code: ErrorCode(error)], level: .warning)
            }
        }
    }

    /// Sets the lanes' counts of parked pushes right.
    private func recount(haveGained: Bool = false) async throws(StoreError) -> OutboxLoad {
        let load = try await core.recount(
            core.table.withLock { Array($0.lanes.values) }, haveGained: haveGained)
        core.observer.setAside(load.aside)
        return load
    }

    /// At start and every ten seconds: what dead processes left. At start and once a minute: pushes in lanes
    /// that are gone, custody that has ended in the store, and records that may go.
    private func sweepLoop() async {
        var sweepsAt = core.world.instant()
        while !Task.isCancelled {
            let now = lookAtClock()
            do throws(StoreError) {
                try await takeOver()
                if core.world.instant() >= sweepsAt {
                    sweepsAt = core.world.instant() + core.limits.sweepEvery
                    try await core.clock.keep()
                    try await letGo()
                    try await endCustody(before: now)
                    _ = try await core.registry.purge(before: now, limit: core.limits.sweepRows)
                }
            } catch {
                core.journal.note("sweep failed", [.code: ErrorCode(error)], level: .warning)
            }
            do { try await core.world.sleep(core.world.instant() + untilNextLook()) } catch { return }
        }
    }

    /// The time by which things now end; reports when the wall clock is not believed, and when it is again.
    private func lookAtClock() -> UnixTime {
        let time = core.clock.now
        let wasDoubted = isClockDoubted.exchange(time.isDoubted, ordering: .relaxed)
        if time.isDoubted, !wasDoubted {
            core.journal.note("wall clock is not believed", [.after: time.ahead], level: .error)
        } else if wasDoubted, !time.isDoubted {
            core.journal.note("wall clock is believed again")
        }
        core.observer.clockDoubted(time.ahead)
        return time.judged
    }

    /// Three to five quarters of the span, so that processes that were started together drift apart.
    private func untilNextLook() -> Duration {
        let span = core.limits.lookEvery.wholeMilliseconds
        let jitter = Int64(core.world.random() % UInt64(max(1, span / 2)))
        return .milliseconds(span - span / 4 + jitter)
    }

    private func endCustody(before now: UnixTime) async throws(StoreError) {
        // Ends: each round removes what it counts.
        while true {
            let ended = try await core.ownership.endCustody(before: now, limit: core.limits.sweepRows)
            for (name, count) in ended { core.observer.custodyEnded(name, count) }
            if ended.values.reduce(0, +) < core.limits.sweepRows { break }
        }
    }
}
