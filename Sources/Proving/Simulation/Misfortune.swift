import Delivery
import PushModel

/// What goes wrong in a storm: each is drawn by itself, at any moment, beside others.
extension Stage {
    func misfortune(until end: ContinuousClock.Instant) async {
        await scheduler.pause(.zero ... .seconds(10))
        while scheduler.instant < end {
            await strike()
            await scheduler.pause(.milliseconds(100) ... .seconds(15))
        }
    }

    private func strike() async {
        // Misfortunes seldom come alone.
        let process = processes[scheduler.chance(40) ? 0 : scheduler.random(in: 0...processes.count - 1)]
        switch scheduler.random(in: 0...20) {
        case 0, 1: await crash(process)
        case 2:
            process.hold()
            // Often longer than a lease.
            await scheduler.pause(.seconds(1) ... .seconds(45))
            process.goOn()
        case 3:
            process.trouble { $0.isCut = true }
            await scheduler.pause(.milliseconds(200) ... .seconds(40))
            process.trouble { $0.isCut = false }
        case 4: await loseDatabase()
        case 5, 6: await setClock(of: process)
        case 7: service.remove(device: scheduler.random(in: 0...peers.devices - 1))
        case 8, 9, 10: await strikeService()
        case 11: await restart(process)
        case 12, 13: await reload(process)
        case 14, 15: await hang(process)
        case 16, 17: await fail(process)
        case 18: await spoil(process)
        case 19:
            process.setToken(false)
            await scheduler.pause(.seconds(10) ... .seconds(80))
            process.setToken(true)
        default:
            service.closeIdle()
        }
    }

    // MARK: Push services

    private func strikeService() async {
        var mood = SimulatedPushService.Mood()
        switch scheduler.random(in: 0...4) {
        case 0:
            mood.busy = scheduler.random(in: 20...100)
            mood.asking = scheduler.random(in: 0...100)
        case 1:
            mood.unprocessed = scheduler.random(in: 0...60)
            mood.cut = scheduler.random(in: 0...60)
            mood.window = scheduler.random(in: 1...4)
        case 2:
            // No request is so much as looked at, for long.
            mood.unprocessed = scheduler.random(in: 90...100)
            service.turn(mood)
            await scheduler.pause(.seconds(20) ... .seconds(60))
        case 3:
            mood.refusing = scheduler.random(in: 10...100)
            // Some are a proxy's.
            if scheduler.chance(40) { (mood.foreign, mood.refusing) = (mood.refusing, 5) }
        default:
            mood.silent = scheduler.random(in: 10...100)
            mood.latency = .milliseconds(10) ... .seconds(scheduler.random(in: 1...4))
        }
        service.turn(mood)
        await scheduler.pause(.seconds(1) ... .seconds(30))
        service.turn(nil)
    }

    // MARK: Processes

    private func crash(_ process: SimulatedProcess) async {
        guard process.isUp else { return }
        process.kill()
        if scheduler.chance(50) { file?.losePower() }
        await scheduler.pause(.milliseconds(100) ... .seconds(30))
        if !process.isUp { process.start() }
    }

    /// Stopped in good order, and started again.
    private func restart(_ process: SimulatedProcess) async {
        guard process.isUp else { return }
        if scheduler.chance(20) { process.reload() }
        await process.stop()
        let end = scheduler.instant + .seconds(60)
        while process.isUp, scheduler.instant < end {
            await scheduler.pause(.milliseconds(10) ... .milliseconds(500))
        }
        await scheduler.pause(.zero ... .seconds(10))
        if !process.isUp { process.start() }
    }

    private func reload(_ process: SimulatedProcess) async {
        for _ in 0..<scheduler.random(in: 1...3) {
            let missing = scheduler.chance(30) ? process.someLane : nil
            process.reload(without: Set([missing].compactMap(\.self)))
            await scheduler.pause(.milliseconds(10) ... .seconds(15))
            if missing != nil { process.reload() }
        }
    }

    // MARK: Clocks

    /// How wrong clocks are: by up to an hour, by a day, by a year.
    private var someSkew: Duration {
        let span =
            switch scheduler.random(in: 0...3) {
            case 0: scheduler.random(in: .hours(23) ... .hours(26))
            case 1: scheduler.random(in: .hours(24 * 300) ... .hours(24 * 500))
            default: scheduler.random(in: .zero...PushLedger.skew)
            }
        return span * (scheduler.chance(50) ? 1 : -1)
    }

    private func setClock(of process: SimulatedProcess) async {
        // Before the store has a first time, nobody can say that a clock is wrong.
        guard process.service?.clock.isWitnessed ?? false else { return }
        // A file's marks age by the clock of its one process.
        if file != nil { ledger.marksMayGo() }
        ledger.noteWrongClock()
        if scheduler.chance(40), process.isUp {
            // Wrong from the boot on.
            process.kill()
            process.skew(someSkew)
            await scheduler.pause(.milliseconds(100) ... .seconds(5))
            if !process.isUp { process.start() }
        } else {
            process.skew(someSkew)
        }
        await scheduler.pause(.seconds(1) ... .seconds(20))
        process.skew(.zero)
    }

    // MARK: Stores

    private func loseDatabase() async {
        guard let database else {
            guard let file, processes[0].isUp else { return }
            processes[0].kill()
            file.losePower()
            await scheduler.pause(.milliseconds(100) ... .seconds(5))
            if !processes[0].isUp { processes[0].start() }
            return
        }
        database.crash()
        await scheduler.pause(.milliseconds(100) ... .seconds(scheduler.chance(50) ? 4 : 25))
        if scheduler.chance(60) {
            // The server that takes over has a clock of its own.
            ledger.noteWrongClock()
            database.failOver(skew: .seconds(scheduler.chance(50) ? 15 : -15))
        }
        database.start()
    }

    /// Calls of some kinds are not answered for a while.
    private func hang(_ process: SimulatedProcess) async {
        var kinds: Set<EngineLink.Kind> = []
        for _ in 0..<scheduler.random(in: 1...4) {
            let all = EngineLink.Kind.allCases
            kinds.insert(all[scheduler.random(in: 0...all.count - 1)])
        }
        if scheduler.chance(50) { kinds.insert(.load) }
        if scheduler.chance(30) { kinds = Set(EngineLink.Kind.allCases) }
        let span = scheduler.random(in: .seconds(2) ... .seconds(25))
        let until = scheduler.elapsed + span
        process.trouble { trouble in
            trouble.hanging = kinds
            trouble.hangsUntil = until
        }
        await withDiscardingTaskGroup { group in
            for _ in 0..<scheduler.random(in: 0...4) {
                group.addTask {
                    await scheduler.pause(.zero...span)
                    await peers.notify(
                        1, isUrgent: false, custody: .seconds(86_400), waits: true, at: process.number)
                }
            }
            if scheduler.chance(40) {
                var mood = SimulatedPushService.Mood()
                mood.silent = scheduler.random(in: 30...100)
                service.turn(mood)
            }
            await scheduler.pause(span...span)
        }
        service.turn(nil)
    }

    /// Calls fail now and then, and were made or were not; often beside a reload.
    private func fail(_ process: SimulatedProcess) async {
        process.trouble { $0.fails = scheduler.random(in: 3...30) }
        for _ in 0..<scheduler.random(in: 0...5) {
            await scheduler.pause(.zero ... .seconds(5))
            process.reload()
        }
        await scheduler.pause(.seconds(2) ... .seconds(15))
        process.trouble { $0.fails = 0 }
    }

    /// Rows that do not open, beside a store that fails now and then.
    private func spoil(_ process: SimulatedProcess) async {
        process.trouble { trouble in
            if scheduler.chance(50) { trouble.spoils = scheduler.random(in: 1...20) }
            if scheduler.chance(50) { trouble.locked = scheduler.random(in: 1...40) }
            if scheduler.chance(50) { trouble.fails = scheduler.random(in: 3...15) }
        }
        await scheduler.pause(.seconds(5) ... .seconds(40))
        process.trouble { trouble in
            trouble.spoils = 0
            trouble.locked = 0
            trouble.fails = 0
        }
    }
}

extension Duration {
    fileprivate static func hours(_ count: Int) -> Duration { .seconds(count * 3_600) }
}
