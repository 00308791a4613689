import AtRest
import Delivery
import PushModel
import Synchronization

/// What is broken on purpose in one life of a process: what decorators of its store, its providers and its
/// clock do. The product has no seam for it.
final class Saboteur: Sendable {
    private struct State {
        var volatileUnderWay = 0
        /// The answer that halted a lane.
        var halting: [LaneName: Answer] = [:]
        /// What each lane hears again, and how often yet.
        var repeated: [LaneName: (answer: Answer, left: Int)] = [:]
    }

    private let planted: SeedRun.Sabotage
    private let scheduler: Scheduler
    private let tick: Duration
    private let lanePushes: Int
    private let snapshot: @Sendable () -> [LaneSnapshot]
    private let state = Mutex(State())

    /// - Parameter snapshot: the lanes as they stand.
    init(
        _ planted: SeedRun.Sabotage, _ scheduler: Scheduler, _ limits: DeliveryLimits,
        snapshot: @escaping @Sendable () -> [LaneSnapshot]
    ) {
        self.planted = planted
        self.scheduler = scheduler
        tick = limits.tick
        lanePushes = limits.lanePushes
        self.snapshot = snapshot
    }

    func ofStore() -> WatchedStore.Faults {
        var found = WatchedStore.Faults()
        found.knowsOnFault = planted.contains(.guessesEnvironment)
        if planted.contains(.waitsForVolatile) {
            found.mayReclaim = { self.state.withLock { $0.volatileUnderWay == 0 } }
        }
        if planted.contains(.countsLocalRefusals) { found.estranges = { self.estranged($0) } }
        if planted.contains(.mistakesDevices) { found.estranges = { self.readdressed($0) } }
        if planted.contains(.waitsForRoom) {
            found.mayClaim = { lane in
                (self.snapshot().first { $0.lane == lane }?.inMemory ?? 0) * 2 <= self.lanePushes
            }
        }
        return found
    }

    func ofProvider(_ store: SealedStore) -> SimulatedProvider.Sabotage {
        var found = SimulatedProvider.Sabotage()
        found.waitsAfterIdle = planted.contains(.blamesIdle)
        found.insists = planted.contains(.forgetsAttempts)
        found.keepsTheDeaf = planted.contains(.keepsTheDeaf)
        found.believesPages = planted.contains(.believesPages)
        found.losesLate = planted.contains(.losesLate)
        found.before = { push in
            if push.custody == .volatile { self.state.withLock { $0.volatileUnderWay += 1 } }
            if self.planted.contains(.settlesFirst), push.custody == .durable {
                // A failure leaves the row, and then nothing is broken.
                _ = try? await store.settle([Settlement(push, .settle, first: .accepted)], feedback: [])
            }
            return self.probeAnswer(push)
        }
        found.after = { push, answer in
            self.state.withLock { state in
                if push.custody == .volatile { state.volatileUnderWay -= 1 }
                if answer.outcome == .misconfigured(.credential) { state.halting[push.lane] = answer }
            }
            return self.changed(answer, of: push)
        }
        return found
    }

    /// A lane that is halted hears again what halted it, whatever it sends.
    private func probeAnswer(_ push: OwedPush) -> Answer? {
        guard planted.contains(.probesWithOne),
            snapshot().contains(where: { $0.lane == push.lane && $0.isHalted })
        else { return nil }
        return state.withLock { $0.halting[push.lane] }
    }

    private func changed(_ answer: Answer, of push: OwedPush) -> Answer {
        if planted.contains(.repeatsRefusals) { return repeated(answer, of: push) }
        if planted.contains(.deniesArrival), answer.fate == .unknown {
            return Answer(answer.outcome, answer.reason, sentAt: answer.sentAt, fate: .unprocessed)
        }
        guard planted.contains(.countsLocalRefusals), Self.isRefusedByUs(push) else { return answer }
        return Answer(answer.outcome, answer.reason, sentAt: answer.sentAt, fate: .answered)
    }

    private func repeated(_ answer: Answer, of push: OwedPush) -> Answer {
        state.withLock { state in
            if answer.outcome == .misconfigured(.credential) {
                state.repeated[push.lane] = (answer, 6)
            } else if let (refusal, left) = state.repeated[push.lane], left > 0 {
                state.repeated[push.lane] = (refusal, left - 1)
                return refusal
            }
            return answer
        }
    }

    /// A push to an address that reads like its own, and that nobody else has.
    private func readdressed(_ push: OwedPush) -> OwedPush {
        guard let target = Peers.read(push.message) else { return push }
        let address = Secret("\(target.device).\(target.token).\(scheduler.random())".utf8)
        let message: ProviderMessage
        if var fcm = push.message.fcm {
            fcm.address = address
            message = .fcm(fcm)
        } else if var apns = push.message.apns {
            apns.token = address
            message = .apns(apns)
        } else {
            return push
        }
        return OwedPush(
            id: push.id, sentAs: push.sentAs, row: push.row, lane: push.lane, pushClass: push.pushClass,
            origin: push.origin,
            record: push.record, touchedAt: push.touchedAt, registeredAddress: push.registeredAddress,
            notBefore: push.notBefore, custodyEnds: push.custodyEnds, attempt: push.attempts.stored,
            epoch: push.epoch, mark: push.mark, instance: push.instance, message: message)
    }

    private static func isRefusedByUs(_ push: OwedPush) -> Bool {
        Peers.read(push.message).map { $0.device >= Traits.MadeUp.byUs } ?? false
    }

    /// A push as if it were of another origin than any.
    private func estranged(_ push: OwedPush) -> OwedPush {
        guard Self.isRefusedByUs(push) else { return push }
        let origin = Digest16(high: scheduler.random(), low: scheduler.random())
        return OwedPush(
            id: push.id, sentAs: push.sentAs, row: push.row, lane: push.lane, pushClass: push.pushClass,
            origin: origin,
            record: push.record, touchedAt: push.touchedAt, registeredAddress: push.registeredAddress,
            notBefore: push.notBefore, custodyEnds: push.custodyEnds, attempt: push.attempts.stored,
            epoch: push.epoch, mark: push.mark, instance: push.instance, message: push.message)
    }

    func world(_ world: World, _ link: EngineLink) -> World {
        guard planted.contains(.tickAwaitsStore) else { return world }
        var changed = world
        changed.sleep = { until in
            let isTick = until - world.instant() == self.tick
            try await world.sleep(until)
            while isTick, link.isHanging(.load), !Task.isCancelled {
                try await world.sleep(world.instant() + self.tick)
            }
        }
        return changed
    }
}

extension SeedRun.Sabotage {
    /// All, by the words that the tool knows them by.
    package static let byName: [String: SeedRun.Sabotage] = [
        "settles-first": .settlesFirst, "marks-apart": .marksApart, "long-lease": .longLease,
        "sync-off": .syncOff, "claims-others": .claimsOthers, "loses-claims": .losesClaims,
        "guesses-environment": .guessesEnvironment, "reclaims-beside-reload": .reclaimsBesideReload,
        "trusts-clocks": .trustsClocks, "waits-for-volatile": .waitsForVolatile,
        "counts-local-refusals": .countsLocalRefusals, "probes-with-one": .probesWithOne,
        "waits-for-room": .waitsForRoom, "forgets-attempts": .forgetsAttempts,
        "tick-awaits-store": .tickAwaitsStore, "blames-idle": .blamesIdle,
        "keeps-withdrawn": .keepsWithdrawn, "undoes-nothing": .undoesNothing, "halts-at-once": .haltsAtOnce,
        "forgets-phones": .forgetsPhones,
        "ends-newer": .endsNewer,
        "denies-arrival": .deniesArrival, "keeps-the-deaf": .keepsTheDeaf,
        "repeats-refusals": .repeatsRefusals, "mistakes-devices": .mistakesDevices,
        "believes-pages": .believesPages, "keeps-the-ended": .keepsTheEnded, "loses-late": .losesLate,
        "repeats-unknown": .repeatsUnknown
    ]

    /// What finds it: another law that is broken beside is no proof that this one would be seen.
    package var laws: Set<Violation.Law> {
        switch self {
        case .settlesFirst, .claimsOthers, .reclaimsBesideReload, .longLease:
            [.sentByStranger, .sentAtOnce, .sentAfterAnswer, .sentAfterSettling]
        case .marksApart: [.twoNames]
        case .syncOff: [.lost, .registrationLost]
        case .guessesEnvironment: [.lost, .registrationLost]
        case .trustsClocks: [.lost, .registrationLost, .custodyEndedEarly]
        case .losesClaims, .waitsForVolatile, .probesWithOne: [.starved, .notDrained]
        case .countsLocalRefusals: [.haltedByOne]
        case .waitsForRoom: [.urgentOvertaken]
        case .forgetsAttempts: [.tooManyAttempts]
        case .tickAwaitsStore: [.lateReply]
        case .blamesIdle: [.urgentLate]
        case .keepsWithdrawn: [.failedAndSent]
        case .undoesNothing: [.failedAndSilent]
        case .haltsAtOnce: [.haltedByStray]
        case .forgetsPhones: [.phoneAskedTooOften]
        case .endsNewer: [.endedByOlderWord]
        case .deniesArrival: [.tooManyCopies, .rangTwice]
        case .keepsTheDeaf: [.starved, .notDrained]
        case .repeatsRefusals: [.haltedBesideAcceptance]
        case .mistakesDevices: [.slowedByOne, .phoneAskedTooOften]
        case .believesPages: [.lost, .custodyEndedEarly]
        case .keepsTheEnded: [.sentAfterEnd]
        case .losesLate: [.sentAfterLateAnswer]
        case .repeatsUnknown: [.tooManyCopies]
        default: Set(Violation.Law.allCases)
        }
    }

    /// What is a matter of bounds.
    func changed(_ limits: DeliveryLimits) -> DeliveryLimits {
        var limits = limits
        if contains(.haltsAtOnce) { limits.breakerFaults = 1 }
        if contains(.forgetsPhones) { limits.waitingAddresses = 0 }
        if contains(.repeatsUnknown) { limits.unknownSends = .max }
        return limits
    }

    /// What a seed must have for the fault to be seen, whatever else it has.
    var misbehaviours: Misbehaviour {
        switch self {
        case .endsNewer: .newTokens
        case .deniesArrival, .losesLate: .late
        case .repeatsUnknown: .cuts
        case .keepsTheDeaf: .deafness
        case .repeatsRefusals: .strayFaults
        case .mistakesDevices: .quotas
        case .believesPages: .pages
        case .keepsTheEnded: .departures
        default: []
        }
    }

    var ofEngine: EngineLink.Sabotage {
        var found: EngineLink.Sabotage = []
        if contains(.marksApart) { found.insert(.marksApart) }
        if contains(.longLease) { found.insert(.shortLease) }
        if contains(.claimsOthers) { found.insert(.claimsOthers) }
        if contains(.losesClaims) { found.insert(.losesClaims) }
        if contains(.trustsClocks) { found.insert(.trustsClocks) }
        if contains(.keepsWithdrawn) { found.insert(.keepsWithdrawn) }
        if contains(.undoesNothing) { found.insert(.undoesNothing) }
        if contains(.endsNewer) { found.insert(.endsNewer) }
        if contains(.keepsTheEnded) { found.insert(.keepsTheEnded) }
        return found
    }
}
