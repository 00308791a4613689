import AtRest
import OriginServer
import PushModel
import PushTesting
import Synchronization
import WireFormats
import ZulipPush

/// An origin, its surroundings, and what happens to them: a storm, a calm, the judgement.
struct OriginStage: Sendable {
    private let scheduler: Scheduler
    private let ledger: OriginLedger
    private let relay: PlayedRelay
    private let origin: SimulatedOrigin
    private let phones: [PlayedClient]
    private let users: [String]
    private let database: SimulatedDatabase?
    private let file: SimulatedFile?
    private let sabotage: OriginSeedRun.Sabotage
    private let isOver = Stage.Flag()

    init(
        _ scheduler: Scheduler, _ ledger: OriginLedger, _ kind: SeedRun.EngineKind,
        _ sabotage: OriginSeedRun.Sabotage
    ) {
        self.scheduler = scheduler
        self.ledger = ledger
        self.sabotage = sabotage
        relay = PlayedRelay(scheduler, ledger)
        let isSynced = !sabotage.contains(.syncOff)
        switch kind {
        case .memory:
            database = SimulatedDatabase(scheduler, waitsForLog: isSynced, leasesByWallClock: false)
            file = nil
        case .sqlite:
            database = nil
            file = SimulatedFile(scheduler, isSynced: isSynced)
        }
        let store = database.map(SimulatedProcess.StoreKind.server) ?? .file(file!)
        let users = (0..<scheduler.random(in: 1...4)).map { "user-\($0)" }
        self.users = users
        let drawing = World(
            now: { scheduler.now }, instant: { scheduler.instant },
            sleep: { try await scheduler.sleep(until: $0) }, random: { scheduler.random() })
        let traits = Traits(scheduler, devices: 1, seed: 0, [])
        let origin = SimulatedOrigin(
            SimulatedOrigin.Surroundings(
                scheduler: scheduler, ledger: ledger, relay: relay, keys: AtRestKeys.generate(drawing),
                store: store, users: users, sabotage: sabotage,
                pushes: PushLedger(scheduler, traits, isTold: false)))
        self.origin = origin
        let relay = relay
        phones = (0..<scheduler.random(in: 2...8)).map { number in
            PlayedClient(
                number, users[scheduler.random(in: 0...users.count - 1)],
                ZulipProfile.allCases[scheduler.random(in: 0...2)], origin, relay, scheduler, ledger)
        }
    }

    func play() async {
        origin.start()
        let span = scheduler.random(in: .seconds(30) ... .seconds(240))
        let end = scheduler.instant + span
        await withDiscardingTaskGroup { group in
            for phone in phones { group.addTask { await follow(phone) } }
            await withDiscardingTaskGroup { storm in
                for phone in phones { storm.addTask { await use(phone, until: end) } }
                for _ in 0..<scheduler.random(in: 3...20) {
                    storm.addTask {
                        await scheduler.pause(.zero...span)
                        await notify(users[scheduler.random(in: 0...users.count - 1)])
                    }
                }
                for _ in 0..<scheduler.random(in: 0...3) { storm.addTask { await misfortune(until: end) } }
            }
            await calm()
            isOver.raise()
        }
        await stop()
    }

    // MARK: Storm

    /// The app stays connected, and comes back by itself where the server says that it has nothing of it.
    private func follow(_ phone: PlayedClient) async {
        while !isOver.isRaised {
            if await phone.follow(blocks: true), !phone.isMissing {
                await scheduler.pause(.milliseconds(10) ... .milliseconds(500))
            }
            if phone.isMissing { await phone.register() }
            await scheduler.pause(.milliseconds(1) ... .milliseconds(50))
        }
    }

    private func use(_ phone: PlayedClient, until end: ContinuousClock.Instant) async {
        while scheduler.instant < end {
            await scheduler.pause(.milliseconds(10) ... .seconds(40))
            switch scheduler.random(in: 0...9) {
            case 0: await phone.forget()
            case 1: await phone.register(isBad: true)
            case 2, 3:
                // A bystander's word: its push service knows the phone no more.
                if phone.profile != .v11 { relay.end(phone.relayName) }
            default: await phone.register()
            }
        }
    }

    private func notify(_ user: String) async {
        let number = ledger.nextNumber()
        let digits = withUnsafeBytes(of: number.bigEndian) { Array($0) }
        let id = Hex.encode([UInt8](repeating: 0, count: 8) + digits)
        let at = scheduler.now.seconds
        let devices = await origin.ask { house -> Int? in
            do {
                guard let known = try await house.people.user(user) else { return nil }
                let message = ZulipMessage(
                    id: Int64(number), time: at, content: "number \(number)", senderID: 1, senderName: "she",
                    senderAvatarURL: "https://chat.example", recipient: .direct(userIDs: [known.id]))
                return try await house.notifier.notify(known, id: id, .message(message))
            } catch { return nil }
        }
        guard let devices else { return }
        ledger.happened("notification \(number) of \(user) is owed to \(devices)")
        ledger.notified(id, devices)
    }

    private func misfortune(until end: ContinuousClock.Instant) async {
        while scheduler.instant < end {
            await scheduler.pause(.milliseconds(100) ... .seconds(30))
            switch scheduler.random(in: 0...9) {
            case 0, 1, 2: await crash()
            case 3: await restart()
            case 4:
                origin.hold()
                await scheduler.pause(.seconds(1) ... .seconds(45))
                origin.goOn()
            case 5: await loseDatabase()
            case 6:
                origin.trouble { $0.fails = scheduler.random(in: 3...30) }
                await scheduler.pause(.seconds(2) ... .seconds(30))
                origin.trouble { $0.fails = 0 }
            default: await strikeRelay()
            }
        }
    }

    private func strikeRelay() async {
        var mood = PlayedRelay.Mood()
        switch scheduler.random(in: 0...4) {
        case 0: mood.unreachable = scheduler.random(in: 20...100)
        case 1: mood.lost = scheduler.random(in: 20...100)
        case 2: mood.busy = scheduler.random(in: 20...100)
        case 3: mood.refusing = scheduler.random(in: 20...100)
        default:
            mood.foreign = scheduler.random(in: 10...100)
            mood.latency = .milliseconds(10) ... .seconds(scheduler.random(in: 1...20))
        }
        relay.turn(mood)
        await scheduler.pause(.seconds(1) ... .seconds(60))
        relay.turn(nil)
    }

    private func crash() async {
        guard origin.isUp else { return }
        origin.kill()
        if scheduler.chance(50) { file?.losePower() }
        await scheduler.pause(.milliseconds(100) ... .seconds(20))
        if !origin.isUp { origin.start() }
    }

    private func restart() async {
        guard origin.isUp else { return }
        await origin.stop()
        let end = scheduler.instant + .seconds(60)
        while origin.isUp, scheduler.instant < end {
            await scheduler.pause(.milliseconds(10) ... .milliseconds(500))
        }
        await scheduler.pause(.zero ... .seconds(10))
        if !origin.isUp { origin.start() }
    }

    private func loseDatabase() async {
        guard let database else { return await crash() }
        database.crash()
        await scheduler.pause(.milliseconds(100) ... .seconds(20))
        database.start()
    }

    // MARK: Calm and judgement

    /// Longer than a healthy origin may take: waits of two minutes that the relay asked for, with as much
    /// jitter, behind waits of a minute.
    private static let patience = Duration.seconds(1_800)

    private func calm() async {
        ledger.happened("calm")
        relay.turn(nil)
        database?.start()
        origin.goOn()
        origin.trouble { $0 = EngineLink.Trouble() }
        let end = scheduler.instant + Self.patience
        await wait(until: end) { phones.allSatisfy { !$0.isUncertain } }
        // The last deaths are found at the next notification.
        for user in users { await wait(until: end) { await found(user) } }
        await wait(until: end) { await isSettled() }
        await judge()
    }

    private func found(_ user: String) async -> Bool {
        let before = ledger.answered.notifications
        await notify(user)
        return ledger.answered.notifications > before
    }

    private func wait(until end: ContinuousClock.Instant, _ holds: () async -> Bool) async {
        while scheduler.instant < end {
            if !origin.isUp { origin.start() }
            for phone in phones where phone.isUncertain { await phone.settle() }
            if await holds() { return }
            await scheduler.pause(.seconds(1) ... .seconds(3))
        }
    }

    /// Nothing is owed, and every phone has what it wants; nor did that change over some seconds, in which an
    /// answer may have been on its way.
    private func isSettled() async -> Bool {
        for _ in 0..<2 {
            let left = await origin.ask { house in
                // Out: asked again.
                try? await house.store.load().rows
            }
            guard left == 0 else { return false }
            for phone in phones {
                guard phone.hasQueue, !phone.isMissing, let rows = await phone.rows(), rows.queue.isEmpty,
                    fault(phone, rows) == nil
                else { return false }
            }
            await scheduler.pause(.seconds(30) ... .seconds(30))
        }
        return true
    }

    private func judge() async {
        for phone in phones {
            // What was told last is on its way.
            for _ in 0..<50 where await phone.follow(blocks: false) {}
            guard let rows = await phone.rows() else {
                ledger.broke(.stuck, "phone \(phone.number): nobody can say what the server has of it")
                continue
            }
            judge(phone, rows)
        }
        for one in ledger.notified { await judge(one.id, owedTo: one.devices) }
        let calls = await origin.ask { house -> Int? in
            // Out: nothing is said of it.
            try? await house.store.load().rows
        }
        if let calls, calls > 0 { ledger.broke(.leftOver, "\(calls) calls are owed") }
    }

    private func judge(_ phone: PlayedClient, _ rows: ZulipRegistrations) {
        let name = "phone \(phone.number) (\(phone.profile))"
        for item in rows.queue.values { ledger.broke(.pendingForEver, "\(name): \(item.tries) tries") }
        if let law = fault(phone, rows) { ledger.broke(law, name) }
        guard let truth = PlayedClient.map(rows.state(phone.profile)) else { return }
        let map = phone.map
        // v11 has no word for what goes.
        let isSame =
            phone.profile == .v11 ? truth.allSatisfy { map[$0.key] == $0.value } : map == truth
        if !isSame { ledger.broke(.mapDiffers, "\(name): has \(map), server \(truth)") }
    }

    /// Where it is not with the server as it was told.
    private func fault(_ phone: PlayedClient, _ rows: ZulipRegistrations) -> OriginViolation.Law? {
        let (isThere, isActive, isRefused) = standing(phone, rows)
        switch phone.wish {
        case _ where phone.isUncertain: return nil
        case .gone: return isThere ? .registrationStayed : nil
        case .registered(let blob) where blob.isBad:
            // In v11, and in v12 within a day, a repeat of a live one changes nothing.
            return isRefused || phone.profile != .zap && isActive ? nil : .notRefused
        case .registered: return isActive ? nil : .registrationLost
        }
    }

    private func standing(
        _ phone: PlayedClient, _ rows: ZulipRegistrations
    ) -> (isThere: Bool, isActive: Bool, isRefused: Bool) {
        switch phone.profile {
        case .v12:
            let row = phone.deviceID.flatMap { rows.devices[$0] }
            return (row != nil, row?.tokenID?.text == phone.relayName, row?.errorCode != nil)
        case .v11, .zap:
            let row = rows.accounts[phone.account]
            let isRefused = row?.errorCode != nil || rows.notes[phone.account] != nil
            return (row != nil, row?.deviceID != nil, isRefused)
        }
    }

    private func judge(_ id: String, owedTo devices: Int) async {
        var found: [NotifiedDevice]??
        for _ in 0..<20 where found == nil {
            found = await origin.ask { house -> [NotifiedDevice]?? in
                // Out: asked again.
                do { return .some(try await house.notifier.devices(of: id)?.1) } catch { return nil }
            }
        }
        guard let known = found, let known else {
            return ledger.broke(.notificationLost, "\(id): nothing is known of it")
        }
        if known.count != devices { ledger.broke(.notificationLost, "\(id): \(known.count) of \(devices)") }
        for one in known {
            switch one.state {
            case .waiting: ledger.broke(.notificationLost, "\(id): waits at \(one.name)")
            case .accepted where relay.delivered(to: one.relayName) == 0:
                ledger.broke(.notDelivered, "\(id): \(one.name)")
            case .accepted, .dead, .refused: break
            }
        }
    }

    private func stop() async {
        await origin.stop()
        let end = scheduler.instant + .seconds(60)
        while origin.isUp, scheduler.instant < end {
            await scheduler.pause(.milliseconds(500) ... .seconds(1))
        }
        if origin.isUp { ledger.broke(.stuck, "it does not stop") }
    }

    /// Takes away what the run left on disk.
    func clear() { file?.remove() }
}
