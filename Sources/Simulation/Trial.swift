import AtRest
import MemoryStore
import PushModel
import Synchronization

/// One seed: a relay of some processes, peers, and misfortune; then calm, and the judgement.
package struct Trial: Sendable {
    /// What is broken on purpose, to see that the law finds it.
    package struct Sabotage: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }
        /// A push is settled before it is sent.
        package static let settlesFirst = Sabotage(rawValue: 1)
        /// A push's mark is remembered beside the commit.
        package static let marksApart = Sabotage(rawValue: 2)
        /// The process counts on a lease that has ended for the store.
        package static let longLease = Sabotage(rawValue: 4)
        /// Commits are answered before they are on stable storage.
        package static let syncOff = Sabotage(rawValue: 8)

        var ofEngine: EngineLink.Sabotage {
            var found: EngineLink.Sabotage = []
            if contains(.marksApart) { found.insert(.marksApart) }
            if contains(.longLease) { found.insert(.shortLease) }
            return found
        }
    }

    package enum EngineKind: String, Sendable, CaseIterable { case memory, sqlite }

    /// What came of a seed.
    package struct Report: Sendable {
        package let seed: UInt64
        package let engine: EngineKind
        package let processes: Int
        package let violations: [Violation]
        /// What happened to the first push of these.
        package let story: [String]
        package let owed: Int
        package let doubled: Int
        package let simulated: Duration
        package let jobs: Int
        /// Equal for equal runs.
        package let digest: UInt64
    }

    package let seed: UInt64
    package let engine: EngineKind?
    package let sabotage: Sabotage

    /// - Parameter engine: `nil`: as the seed has it, a file for one in eight.
    package init(seed: UInt64, engine: EngineKind? = nil, sabotage: Sabotage = []) {
        self.seed = seed
        self.engine = engine
        self.sabotage = sabotage
    }

    /// How long a healthy relay may take to send what it owes: back-off of at most 20 s and leases of as
    /// much, but after a clock was set back as long as a push service may ask to be left alone.
    private static let patience = Duration.seconds(1_800)

    /// Runs the seed on the calling thread.
    package func run() -> Report {
        let scheduler = Scheduler(seed: seed)
        let book = Book(scheduler)
        let kind = engine ?? (scheduler.chance(12) ? .sqlite : .memory)
        let count = kind == .sqlite ? 1 : scheduler.random(in: 2...4)
        let calm = scheduler.machine()
        let isOver = Mutex(false)
        let stage = Stage(scheduler, book, kind, processes: count, sabotage)
        calm.begin {
            await stage.play()
            isOver.withLock { $0 = true }
        }
        let end = scheduler.run { isOver.withLock(\.self) }
        if end != .over { book.record(.stuck) }
        stage.clear()
        let trace = scheduler.trace
        return Report(
            seed: seed, engine: kind, processes: count, violations: book.violations,
            story: book.violations.first.map { book.story(of: $0.number) } ?? [], owed: book.owed,
            doubled: book.doubled, simulated: scheduler.elapsed, jobs: trace.jobs, digest: trace.digest)
    }

    /// The relay, its surroundings, and what happens to them.
    private struct Stage: Sendable {
        let scheduler: Scheduler
        let book: Book
        let service: SimulatedPushService
        let processes: [SimulatedProcess]
        let peers: Peers
        let database: SimulatedDatabase?
        let file: SimulatedFile?

        init(
            _ scheduler: Scheduler, _ book: Book, _ kind: EngineKind, processes count: Int,
            _ sabotage: Sabotage
        ) {
            self.scheduler = scheduler
            self.book = book
            service = SimulatedPushService(scheduler, book: book)
            let drawing = World(
                now: { scheduler.now }, instant: { scheduler.instant },
                sleep: { try await scheduler.sleep(until: $0) }, random: { scheduler.random() })
            let isSynced = !sabotage.contains(.syncOff)
            switch kind {
            case .memory:
                database = SimulatedDatabase(scheduler, waitsForLog: isSynced)
                file = nil
            case .sqlite:
                database = nil
                file = SimulatedFile(scheduler, isSynced: isSynced)
            }
            let store = database.map(SimulatedProcess.StoreKind.server) ?? .file(file!)
            let around = SimulatedProcess.Surroundings(
                scheduler: scheduler, book: book, service: service, keys: AtRestKeys.generate(drawing),
                store: store, sabotage: sabotage)
            processes = (0..<count).map { SimulatedProcess($0, around) }
            peers = Peers(scheduler, book: book, processes: processes, devices: scheduler.random(in: 2...8))
        }

        /// The whole run.
        func play() async {
            for process in processes { process.start() }
            let stormy = scheduler.random(in: .seconds(5) ... .seconds(40))
            let end = scheduler.instant + stormy
            await withDiscardingTaskGroup { group in
                for device in 0..<peers.devices {
                    group.addTask {
                        for version in 1...2 {
                            await scheduler.pause(.zero...stormy / 2)
                            await peers.register(device, version: UInt64(version))
                        }
                    }
                }
                for _ in 0..<scheduler.random(in: 5...30) { group.addTask { await notify(within: stormy) } }
                for _ in 0..<scheduler.random(in: 0...6) { group.addTask { await misfortune(until: end) } }
            }
            await calm()
        }

        private func notify(within span: Duration) async {
            await scheduler.pause(.zero...span)
            let isShort = scheduler.chance(10)
            await peers.notify(
                scheduler.chance(70) ? 1 : scheduler.random(in: 2...8), isUrgent: scheduler.chance(20),
                custody: isShort ? .seconds(20) : .seconds(86_400), waits: scheduler.chance(50))
        }

        // MARK: Misfortune

        /// How far a machine's clock goes wrong at most.
        private static let skew = Duration.seconds(3_600)

        private func misfortune(until end: ContinuousClock.Instant) async {
            await scheduler.pause(.zero ... .seconds(10))
            while scheduler.instant < end {
                await strike()
                await scheduler.pause(.milliseconds(100) ... .seconds(15))
            }
        }

        private func strike() async {
            let process = processes[scheduler.random(in: 0...processes.count - 1)]
            switch scheduler.random(in: 0...9) {
            case 0, 1: await crash(process)
            case 2:
                process.hold()
                // Often longer than a lease.
                await scheduler.pause(.seconds(1) ... .seconds(45))
                process.goOn()
            case 3:
                process.cut(true)
                await scheduler.pause(.milliseconds(200) ... .seconds(40))
                process.cut(false)
            case 4: await loseDatabase()
            case 5:
                // A file's marks age by the clock of its one process.
                if file != nil { book.marksMayGo() }
                process.skew(scheduler.random(in: .zero...Self.skew) * (scheduler.chance(50) ? 1 : -1))
                await scheduler.pause(.seconds(1) ... .seconds(20))
                process.skew(.zero)
            case 6: service.remove(device: scheduler.random(in: 0...peers.devices - 1))
            case 7:
                var mood = SimulatedPushService.Mood()
                mood.busy = scheduler.random(in: 20...100)
                await turn(mood)
            case 8:
                var mood = SimulatedPushService.Mood()
                mood.unprocessed = scheduler.random(in: 0...60)
                mood.cut = scheduler.random(in: 0...60)
                mood.window = scheduler.random(in: 1...4)
                await turn(mood)
            default:
                var mood = SimulatedPushService.Mood()
                mood.silent = scheduler.random(in: 10...100)
                mood.latency = .milliseconds(10) ... .seconds(scheduler.random(in: 1...4))
                await turn(mood)
            }
        }

        private func turn(_ mood: SimulatedPushService.Mood) async {
            service.turn(mood)
            await scheduler.pause(.seconds(1) ... .seconds(30))
            service.turn(.good)
        }

        private func crash(_ process: SimulatedProcess) async {
            guard process.isUp else { return }
            process.kill()
            if scheduler.chance(50) { file?.losePower() }
            await scheduler.pause(.milliseconds(100) ... .seconds(30))
            if !process.isUp { process.start() }
        }

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
            await scheduler.pause(.milliseconds(100) ... .seconds(25))
            database.start()
        }

        // MARK: Calm and judgement

        private func calm() async {
            service.turn(.good)
            database?.start()
            for process in processes {
                process.cut(false)
                process.skew(.zero)
                process.goOn()
                if !process.isUp { process.start() }
            }
            let end = scheduler.instant + Trial.patience
            var isDrained = false
            while !isDrained, scheduler.instant < end {
                await scheduler.pause(.seconds(2) ... .seconds(3))
                isDrained = await rows() == 0
            }
            if !isDrained {
                for line in database?.shared.standing ?? [] { book.tell(0, line) }
                for process in processes { book.tell(0, process.description) }
                book.record(.notDrained)
            }
            await checkRegistrations()
            for process in processes { await process.stop() }
            let stopped = scheduler.instant + .seconds(60)
            while processes.contains(where: \.isUp), scheduler.instant < stopped {
                await scheduler.pause(.milliseconds(500) ... .seconds(1))
            }
            if processes.contains(where: \.isUp) { book.record(.stuck) }
            if isDrained { book.close(at: scheduler.now, skew: Self.skew) }
        }

        /// What the store owes, by the word of a process that serves.
        private func rows() async -> Int? {
            await peers.ask { process in
                // Out: asked again.
                try? await process.store?.load().rows
            }.flatMap(\.self)
        }

        private func checkRegistrations() async {
            for (device, version) in book.registrations {
                var found: Record??
                for _ in 0..<20 where found == nil {
                    found = await peers.ask { process -> Record?? in
                        guard let store = process.store else { return nil }
                        // Out: asked again.
                        guard let records = try? await store.find([Peers.key(device)]) else { return nil }
                        return .some(records[0])
                    }.flatMap(\.self)
                }
                guard let found, let record = found, record.version >= version else {
                    book.record(.registrationLost, device)
                    continue
                }
            }
        }

        /// Takes away what the run left on disk.
        func clear() { file?.remove() }
    }
}
