#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import PushTesting

/// What is done to the relays and to what they stand on, scenario by scenario. The load goes on meanwhile.
struct ClusterFaults: Sendable {
    let plan: ClusterPlan
    let run: TrialRun
    let stage: ClusterStage

    private var random: TrialRandom { run.random }
    private var everybody: Set<Int> { Set(stage.relays.indices) }

    func happen(_ scenario: ClusterScenario) async throws {
        let calm = scenario == .short ? .seconds(1) : plan.calm
        try await run.pause(calm)
        switch scenario {
        case .kills, .mixed: try await kills(plan.kills)
        case .suspension: try await suspension()
        case .crash: try await crashes(plan.crashes)
        case .failover: try await failover()
        case .cut: try await cut()
        case .stall: try await stall()
        case .short: try await both()
        }
        for service in stage.services { service.answerWell() }
        try await run.pause(calm)
    }

    /// The push services fail now and then, so that there is something owed to take over.
    private func misbehave() { for service in stage.services { service.misbehave(random) } }

    /// - Returns: the moment from which on service is waited for.
    private func begin() -> UnixTime {
        let began = run.world.now()
        run.ledger { $0.watch(from: began) }
        return began
    }

    private func kills(_ count: Int) async throws {
        for _ in 0..<count {
            misbehave()
            try await run.pause(milliseconds: 200 + random.below(1300))
            try await killRelay(random.below(stage.relays.count))
        }
    }

    private func killRelay(_ number: Int) async throws {
        let began = begin()
        run.set(nil, of: number)
        await stage.relays[number].kill()
        try await run.untilQuiet(stage.services[number])
        let ended = run.world.now()
        run.ledger {
            $0.happened(TrialFault(.killed, [number], began: began, ended: ended))
        }
        try await stage.launch(number, run)
    }

    /// One kill of a relay and one of the database, without failures of the push services beside: what is
    /// owed then need not wait for the steps of a back-off.
    private func both() async throws {
        try await killRelay(random.below(stage.relays.count))
        try await run.pause(milliseconds: 500)
        try await killDatabase()
    }

    /// One is stopped while its push services fail, so that it holds pushes in memory; all is well when it
    /// wakes up, so that whatever it sends then is seen.
    private func suspension() async throws {
        let number = random.below(stage.relays.count)
        guard let pid = run.address(of: number)?.pid else { throw BenchError(.relayNotReady) }
        stage.services[number].fail()
        try await run.pause(plan.calm)
        let began = begin()
        kill(pid, SIGSTOP)
        stage.services[number].answerWell()
        try await run.pause(plan.suspension)
        let ended = run.world.now()
        kill(pid, SIGCONT)
        run.ledger {
            // What was in the socket when it stopped is read a moment later.
            $0.happened(
                TrialFault(
                    .suspended, [number], began: began, sentUntil: began + TrialFault.stampSlack,
                    ended: ended))
        }
        try await run.pause(plan.calm * 2)
    }

    private func crashes(_ count: Int) async throws {
        for _ in 0..<count {
            misbehave()
            try await run.pause(milliseconds: 500 + random.below(1500))
            try await killDatabase()
            try await run.pause(plan.calm)
        }
    }

    private func killDatabase() async throws {
        guard let database = stage.database else { throw BenchError(.badPlan) }
        let began = begin()
        try await database.primary.kill()
        try await database.primary.startAgain()
        lost(everybody, from: began)
    }

    private func failover() async throws {
        guard let database = stage.database else { throw BenchError(.badPlan) }
        misbehave()
        try await run.pause(milliseconds: 500 + random.below(1500))
        let began = begin()
        try await database.primary.kill()
        try await database.standby.promote()
        lost(everybody, from: began)
        try await run.pause(plan.calm * 2)
    }

    /// First nothing passes for longer than the lease, then all connections are reset.
    private func cut() async throws {
        guard let database = stage.database else { throw BenchError(.badPlan) }
        // What waits for a retry in memory is sent after the cut, and cannot be settled.
        stage.services[0].fail()
        try await run.pause(plan.calm)
        let began = begin()
        for proxy in database.proxies { await proxy.fallSilent() }
        stage.services[0].answerWell()
        try await run.pause(plan.cut)
        let healed = run.world.now()
        for proxy in database.proxies { await proxy.speakAgain() }
        let stops = began + ClusterPlan.sendsOnFor
        run.ledger {
            $0.happened(TrialFault(.storeLost, [0], began: began, sentUntil: stops, ended: healed))
        }
        try await run.pause(plan.calm * 2)
        for proxy in database.proxies { proxy.cut() }
        lost([0], from: run.world.now())
        try await run.pause(plan.calm)
    }

    private func stall() async throws {
        for service in stage.services { service.stall() }
        try await run.pause(plan.stall)
        _ = begin()
    }

    /// The store was away from `began` until now. A relay may send on under its lease before it has a
    /// connection again.
    private func lost(_ relays: Set<Int>, from began: UnixTime) {
        let ended = run.world.now()
        run.ledger {
            $0.happened(
                TrialFault(
                    .storeLost, relays, began: began, sentUntil: ended + ClusterPlan.sendsOnFor,
                    ended: ended))
        }
    }
}
