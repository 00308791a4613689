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
    }

    private let planted: Trial.Sabotage
    private let scheduler: Scheduler
    private let tick: Duration
    private let lanePushes: Int
    private let snapshot: @Sendable () -> [LaneSnapshot]
    private let state = Mutex(State())

    /// - Parameter snapshot: the lanes as they stand.
    init(
        _ planted: Trial.Sabotage, _ scheduler: Scheduler, _ limits: DeliveryLimits,
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
            return self.changed(answer)
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

    private func changed(_ answer: Answer) -> Answer { answer }

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

extension Trial.Sabotage {
    var ofEngine: EngineLink.Sabotage {
        var found: EngineLink.Sabotage = []
        if contains(.marksApart) { found.insert(.marksApart) }
        if contains(.longLease) { found.insert(.shortLease) }
        if contains(.claimsOthers) { found.insert(.claimsOthers) }
        if contains(.losesClaims) { found.insert(.losesClaims) }
        if contains(.trustsClocks) { found.insert(.trustsClocks) }
        return found
    }
}
