import AtRest
import Delivery
import MemoryStore
import PushModel
import Synchronization

/// The relay, its surroundings, and what happens to them: a storm, a calm, the judgement.
struct Stage: Sendable {
    let scheduler: Scheduler
    let ledger: PushLedger
    let service: SimulatedPushService
    let processes: [SimulatedProcess]
    let peers: Peers
    let database: SimulatedDatabase?
    let file: SimulatedFile?
    let traits: Traits
    let sabotage: SeedRun.Sabotage
    let isOver = Flag()

    /// Raised once, and for all.
    final class Flag: Sendable {
        private let state = Mutex(false)
        var isRaised: Bool { state.withLock(\.self) }
        func raise() { state.withLock { $0 = true } }
    }

    init(
        _ scheduler: Scheduler, _ ledger: PushLedger, _ kind: SeedRun.EngineKind, processes count: Int,
        devices: Int,
        _ traits: Traits, _ sabotage: SeedRun.Sabotage
    ) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.traits = traits
        self.sabotage = sabotage
        service = SimulatedPushService(scheduler, ledger: ledger, traits: traits)
        let drawing = World(
            now: { scheduler.now }, instant: { scheduler.instant },
            sleep: { try await scheduler.sleep(until: $0) }, random: { scheduler.random() })
        let isSynced = !sabotage.contains(.syncOff)
        switch kind {
        case .memory:
            database = SimulatedDatabase(
                scheduler, waitsForLog: isSynced, leasesByWallClock: sabotage.contains(.trustsClocks))
            file = nil
        case .sqlite:
            database = nil
            file = SimulatedFile(scheduler, isSynced: isSynced)
        }
        let store = database.map(SimulatedProcess.StoreKind.server) ?? .file(file!)
        let around = SimulatedProcess.Surroundings(
            scheduler: scheduler, ledger: ledger, service: service, keys: AtRestKeys.generate(drawing),
            store: store, traits: traits, sabotage: sabotage)
        processes = (0..<count).map { SimulatedProcess($0, around) }
        peers = Peers(
            scheduler, ledger: ledger, service: service, processes: processes, devices: devices,
            knowsOwn: !traits.misbehaviours.isDisjoint(with: [.newTokens, .departures]))
    }

    /// The whole run.
    func play() async {
        for process in processes { process.start() }
        let stormy = scheduler.random(in: .seconds(5) ... .seconds(40))
        let end = scheduler.instant + stormy
        await withDiscardingTaskGroup { group in
            for _ in 0..<traits.volatileStreams {
                group.addTask { await peers.volatileStream { isOver.isRaised } }
            }
            await withDiscardingTaskGroup { storm in
                for device in 0..<peers.devices {
                    storm.addTask {
                        for _ in 1...2 {
                            await scheduler.pause(.zero...stormy / 2)
                            await peers.register(device)
                        }
                    }
                }
                for _ in 0..<scheduler.random(in: 5...30) { storm.addTask { await notify(within: stormy) } }
                for _ in 0..<scheduler.random(in: 0...6) { storm.addTask { await misfortune(until: end) } }
                if !traits.misbehaviours.isEmpty { storm.addTask { await misbehave(until: end) } }
                if let burst = traits.burst {
                    for _ in 0..<scheduler.random(in: 1...2) {
                        storm.addTask { await crowd(burst, within: stormy) }
                    }
                }
                if traits.withdraws {
                    for _ in 0..<scheduler.random(in: 3...20) {
                        storm.addTask {
                            await scheduler.pause(.zero...stormy)
                            await peers.request(
                                scheduler.chance(60) ? 1 : scheduler.random(in: 2...5),
                                custody: .seconds(86_400))
                        }
                    }
                }
                if let first = traits.madeUp { storm.addTask { await makeUp(from: first, within: stormy) } }
            }
            await calm()
            isOver.raise()
        }
    }

    private func notify(within span: Duration) async {
        await scheduler.pause(.zero...span)
        let isShort = scheduler.chance(10)
        await peers.notify(
            scheduler.chance(70) ? 1 : scheduler.random(in: 2...8), isUrgent: scheduler.chance(20),
            custody: isShort ? .seconds(20) : .seconds(86_400), waits: scheduler.chance(50))
    }

    /// Many at once, of one push service.
    private func crowd(_ sizes: ClosedRange<Int>, within span: Duration) async {
        await scheduler.pause(.zero...span)
        let service = scheduler.random(in: 0...1)
        let process = scheduler.chance(50) ? 0 : peers.someProcess
        await withDiscardingTaskGroup { group in
            group.addTask {
                await peers.notify(
                    scheduler.random(in: sizes), isUrgent: false, custody: .seconds(86_400), waits: false,
                    at: process
                ) { one(of: service, near: $0) }
            }
            for _ in 0..<scheduler.random(in: 2...8) {
                group.addTask {
                    await scheduler.pause(.zero ... .seconds(10))
                    await peers.notify(
                        scheduler.random(in: 1...3), isUrgent: true, custody: .seconds(86_400), waits: true,
                        at: process
                    ) { one(of: service, near: $0) }
                }
            }
        }
    }

    /// A device of that push service.
    private func one(of service: Int, near device: Int) -> Int {
        let found = device / 2 * 2 + service
        return found < peers.devices ? found : service
    }

    /// An origin that has no devices.
    private func makeUp(from first: Int, within span: Duration) async {
        let next = Mutex(first)
        for _ in 0..<scheduler.random(in: 1...3) {
            await scheduler.pause(.zero...span / 2)
            let isAPNs = first == Traits.MadeUp.byUs || scheduler.chance(50)
            await peers.notify(
                scheduler.random(in: 25...50), isUrgent: scheduler.chance(20), custody: .seconds(86_400),
                waits: scheduler.chance(50), by: PushLedger.hostile
            ) { _ in
                next.withLock { next in
                    next += 2
                    return next - 2 + (isAPNs ? 1 : 0)
                }
            }
        }
    }

    // MARK: Calm and judgement

    /// How long a healthy relay may take to send what it owes: back-off of at most 20 s and leases of as
    /// much, but after a clock was set back as long as a push service may ask to be left alone.
    private static let patience = Duration.seconds(1_800)

    /// With something broken on purpose the first finding is enough.
    private var isFound: Bool {
        !sabotage.isEmpty && ledger.violations.contains { sabotage.laws.contains($0.law) }
    }

    private func calm() async {
        service.turn(nil)
        service.behave { $0 = Habits() }
        database?.failOver(skew: .zero)
        database?.start()
        for process in processes { process.mend() }
        await waitForFirstTries()
        service.heal()
        // What has broken the law already is not waited for as long.
        let isBroken = !ledger.violations.isEmpty
        let end = scheduler.instant + (isBroken ? .seconds(120) : Self.patience)
        var left = await drain(until: end)
        if isFound { return }
        if left == nil {
            ledger.standing = (database?.shared.standing ?? []) + processes.map(\.description)
            if !isBroken { ledger.record(.notDrained) }
        }
        await checkRegistrations()
        if left != nil, traits.isQuietAfterwards {
            await quiet()
            left = await drain(until: scheduler.instant + Self.patience)
            if left == nil { ledger.record(.notDrained) }
        }
        await stop()
        if let left { ledger.close(at: scheduler.now, left: left) }
    }

    /// Waits until nothing is owed, or only what nobody waits for.
    ///
    /// - Returns: how much of that; `nil` when something is owed still.
    private func drain(until end: ContinuousClock.Instant) async -> Int? {
        while scheduler.instant < end, !isFound {
            await scheduler.pause(.seconds(2) ... .seconds(3))
            for process in processes where !process.isUp { process.start() }
            guard let left = await rows() else { continue }
            if left == 0 { return 0 }
            if left <= ledger.leftOfHostile, !ledger.owesOthers(at: scheduler.now) { return left }
        }
        return nil
    }

    /// Nothing keeps anything from its first attempt now but what others do.
    private func waitForFirstTries() async {
        // A halted lane probes once a minute, and each probe that meets a poisoned push is one in vain.
        let inVain = Duration.seconds(60) * ledger.poisonedOwed(at: scheduler.now)
        let end = scheduler.instant + traits.patience + inVain
        while scheduler.instant < end, !isFound {
            await scheduler.pause(.seconds(2) ... .seconds(3))
            for process in processes where !process.isUp { process.start() }
            if ledger.untried(at: scheduler.now).isEmpty { return }
        }
        guard !ledger.clocksWereWrong else { return }
        for number in ledger.untried(at: scheduler.now) { ledger.record(.starved, number) }
        for lane in processes.flatMap({ $0.service?.snapshot() ?? [] }) { ledger.happened("\(lane)") }
    }

    /// What the store owes, by the word of a process that serves.
    private func rows() async -> Int? {
        await peers.ask { process in
            // Out: asked again.
            (try? await process.store?.load()).map { $0.rows - $0.aside }
        }.flatMap(\.self)
    }

    private func checkRegistrations() async {
        for (device, version) in ledger.registrations {
            var found: Record??
            for _ in 0..<20 where found == nil {
                found = await peers.ask { process -> Record?? in
                    guard let store = process.store else { return nil }
                    // Out: asked again.
                    guard let records = try? await store.find([Peers.key(device)]) else { return nil }
                    return .some(records[0])
                }.flatMap(\.self)
            }
            guard let found, let record = found, record.version >= version, record.state == .live else {
                ledger.record(service.token(of: device) > 0 ? .endedByOlderWord : .registrationLost, device)
                continue
            }
        }
    }

    /// A call now and then, on connections that were closed meanwhile, and nothing else.
    private func quiet() async {
        isOver.raise()
        // Lanes that were halted have probed by then.
        await scheduler.pause(.seconds(130) ... .seconds(150))
        for _ in 0..<scheduler.random(in: 2...8) {
            for _ in 0..<scheduler.random(in: 1...6) {
                await scheduler.pause(.seconds(1) ... .seconds(20))
                service.closeIdle()
            }
            let number = await peers.notify(
                1, isUrgent: true, custody: .seconds(86_400), waits: true, isOnce: true)
            await scheduler.pause(.seconds(2) ... .seconds(2))
            if ledger.isOwed(number), !ledger.isTried(number) { ledger.record(.urgentLate, number) }
        }
    }

    private func stop() async {
        let isReloaded = scheduler.chance(30)
        for process in processes {
            if isReloaded { process.reload() }
            await process.stop()
        }
        let stopped = scheduler.instant + .seconds(60)
        while processes.contains(where: \.isUp), scheduler.instant < stopped {
            await scheduler.pause(.milliseconds(500) ... .seconds(1))
        }
        if processes.contains(where: \.isUp) { ledger.record(.stuck) }
    }

    /// Takes away what the run left on disk.
    func clear() { file?.remove() }
}
