import NIOCore
import NIOPosix
import PushModel
import Simulators
import Synchronization

/// Kills a relay again and again under load and counts what was lost.
///
/// This process is the push service (a judging simulator over real TLS and HTTP/2) and the origin; the
/// relay is the real program in a process of its own. Each push carries a ciphertext that exists once, by
/// which its arrivals are counted. A request that got no answer is asked again with the same bytes. Beside
/// Zulip, Marmot triggers flow through a Nostr relay of this process, by other rules (``ChaosMarmotLedger``).
package final class ChaosTrial: Sendable {
    let plan: ChaosPlan
    let random: ChaosRandom
    let world: World
    let shared: Shared
    private let say: @Sendable (String) -> Void

    /// What callers, the collector and the killer share.
    final class Shared: Sendable {
        struct State: Sendable {
            var ledger = ChaosLedger()
            /// `nil` while the relay is down.
            var address: RelayStage.Address?
            var isEnding = false
        }

        let state = Mutex(State())

        func ledger<Result: Sendable>(_ body: (inout ChaosLedger) -> Result) -> Result {
            state.withLock { body(&$0.ledger) }
        }
        var address: RelayStage.Address? {
            get { state.withLock { $0.address } }
            set { state.withLock { $0.address = newValue } }
        }
        var isEnding: Bool { state.withLock { $0.isEnding } }
    }

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: ChaosPlan, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.say = say
        random = ChaosRandom(seed: plan.seed)
        world = random.world()
        shared = Shared()
    }

    /// - Returns: the report, and whether nothing was violated.
    /// - Throws: `BenchError` when the trial could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        let group = MultiThreadedEventLoopGroup.singleton
        let authority = try CertificateAuthority()
        let service = try await ChaosService(authority: authority, group: group)
        // Power cuts and traces are about what is written; Marmot writes nothing.
        let marmot =
            plan.powerCuts == nil && plan.trace == nil
            ? try await ChaosMarmot(
                service, authority: authority, bundle: RelayPlan.bundle, world: world, group: group) : nil
        let stage = try makeStage(service, marmot)
        let outcome: ChaosOutcome
        do {
            outcome = try await trial(stage, service, marmot, group)
        } catch {
            await stage.kill()
            await service.stop()
            await marmot?.stop()
            throw error
        }
        await service.stop()
        await marmot?.stop()
        marmot?.search(plan.directory)
        let ledger = shared.ledger { $0 }
        if let trace = plan.trace { try ChaosReport.write(ledger, to: trace.ledger) }
        return ChaosReport.make(plan, ledger, marmot?.ledger, outcome)
    }

    private func makeStage(_ service: ChaosService, _ marmot: ChaosMarmot?) throws -> RelayStage {
        var relay = RelayPlan(
            executable: plan.executable, directory: plan.directory, apnsURL: service.apnsURL,
            authority: service.authorityPEM, apnsKey: service.apnsKey.privateKeyPEM)
        relay.team = service.apnsKey.team
        relay.keyID = service.apnsKey.keyID
        // FCM knows no id of ours, so a traced run, which joins pushes by it, does without.
        relay.fcm = plan.trace == nil ? service.fcm : nil
        if let marmot { relay.marmot = RelayPlan.Marmot(relay: marmot.url, key: marmot.keyText) }
        relay.store = plan.withoutSync ? .sqliteWithoutSync : .sqlite
        if let cuts = plan.powerCuts {
            try makeDirectory("\(plan.directory)/shadow")
            relay.environment = [
                "LD_PRELOAD": cuts.shim, "FORGET_DIR": relay.stateDirectory,
                "FORGET_SHADOW": "\(plan.directory)/shadow", "FORGET_EARLY": String(cuts.earlyPercent)
            ]
        }
        if let trace = plan.trace {
            relay.wrapper = [
                "/usr/bin/strace", "-f", "-yy", "-xx", "-s", "4200", "--seccomp-bpf", "-o", trace.file, "-e",
                "trace=write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync"
            ]
        }
        return try RelayStage(relay, world: world)
    }

    private func trial(
        _ stage: RelayStage, _ service: ChaosService, _ marmot: ChaosMarmot?, _ group: any EventLoopGroup
    ) async throws -> ChaosOutcome {
        try stage.launch()
        shared.address = try await stage.ready(within: ChaosPlan.startSpan)
        let origin = try await makeOrigin(stage, service, group)
        if let cuts = plan.powerCuts { try await restart(stage, cuts) }
        if plan.trace != nil { shared.ledger { $0.keepsAnswers = true } }
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await marmot?.watch() }
            tasks.addTask { try await service.collect(into: self.shared, marmot, world: self.world) }
            try await withThrowingTaskGroup(of: Void.self) { workers in
                for _ in 0..<plan.workers {
                    let eventLoop = group.next()
                    workers.addTask {
                        var caller = ChaosCaller(self, origin, eventLoop)
                        try await caller.run()
                    }
                }
                if let marmot { workers.addTask { try await marmot.publish(self) } }
                if plan.trace != nil {
                    try await service.untilEnough(self)
                } else {
                    try await killAgainAndAgain(stage, service, marmot)
                }
                service.answerWell()
                shared.state.withLock { $0.isEnding = true }
                try await workers.waitForAll()
            }
            let drained = try await drain()
            try await marmot?.untilListening(self)
            try await marmot?.finish(self)
            let status = await stage.stop(within: .seconds(30))
            tasks.cancelAll()
            // The collector ends by being cancelled, and in no other way.
            do { try await tasks.waitForAll() } catch is CancellationError {}
            return ChaosOutcome(drainedIn: drained, exitStatus: status)
        }
    }

    /// Ends the relay in order and starts it again: the set-up is on the disk then, whatever the relay
    /// syncs, so that what a cut loses is pushes.
    private func restart(_ stage: RelayStage, _ cuts: ChaosPlan.PowerCuts) async throws {
        shared.address = nil
        guard await stage.stop(within: .seconds(30)) == 0 else { throw BenchError(.relayNotReady) }
        try await cut(cuts, stage)
        try stage.launch()
        shared.address = try await stage.ready(within: ChaosPlan.startSpan)
    }

    /// Signs up and registers the devices, at the relay and at the push service.
    private func makeOrigin(
        _ stage: RelayStage, _ service: ChaosService, _ group: any EventLoopGroup
    ) async throws -> LoadOrigin {
        guard let address = shared.address else { throw BenchError(.relayNotReady) }
        var origin = LoadOrigin(
            host: "\(address.host):\(address.port)", bouncerKey: stage.bouncerKey, bundle: stage.plan.bundle,
            world: world)
        var books = try origin.signUp() + [origin.addDevices(plan.devices, .apns)]
        if stage.plan.fcm != nil { books.append(try origin.addDevices(plan.devices / 2, .fcm)) }
        for book in books {
            try await LoadOrigin.drive(book, host: address.host, port: address.port, group.next())
        }
        for device in origin.devices { service.register(device, bundle: stage.plan.bundle) }
        return origin
    }

    /// Kills at random moments, most of them under load, some while the relay is still starting.
    private func killAgainAndAgain(
        _ stage: RelayStage, _ service: ChaosService, _ marmot: ChaosMarmot?
    ) async throws {
        for number in 1...max(1, plan.kills) {
            if random.below(6) > 0 {
                if shared.address == nil {
                    shared.address = try await stage.ready(within: ChaosPlan.startSpan)
                }
                service.misbehave(random)
                // Every other one is killed before it listens, or while it is about to.
                if random.below(2) == 0 { try await marmot?.untilListening(self) }
                try await pause(milliseconds: 20 + random.below(280))
            } else {
                try await pause(milliseconds: random.below(120))
            }
            let began = world.now()
            await stage.kill()
            shared.address = nil
            try await service.untilQuiet(self)
            try await marmot?.killed(self)
            if number.isMultiple(of: 7) { marmot?.search(plan.directory) }
            shared.ledger { $0.killed(.init(began: began, ended: world.now())) }
            if let cuts = plan.powerCuts { try await cut(cuts, stage) }
            try stage.launch()
            if number % 50 == 0 { say("\(number) kills, \(shared.ledger { $0.items.count }) pushes") }
        }
        shared.address = try await stage.ready(within: ChaosPlan.startSpan)
    }

    private func cut(_ cuts: ChaosPlan.PowerCuts, _ stage: RelayStage) async throws {
        let program = try ChildProcess(
            cuts.cut, [stage.plan.stateDirectory, "\(plan.directory)/shadow"],
            environment: ["PATH": "/usr/bin:/bin"], log: stage.plan.logFile)
        guard await program.wait() == 0 else { throw BenchError(.processFault) }
    }

    /// Waits until everything acknowledged has arrived.
    ///
    /// - Returns: how long that took; `nil` when something is still missing at the end of the span.
    private func drain() async throws -> Duration? {
        let began = world.instant()
        // Where losing is what is to be shown, there is no use in waiting for what will not come.
        let span: Duration = plan.withoutSync ? .seconds(15) : ChaosPlan.drainSpan
        while shared.ledger({ $0.missing }) > 0 {
            guard world.instant() - began < span else { return nil }
            try await pause(milliseconds: 50)
        }
        // A double that is still under way would be seen now.
        try await pause(milliseconds: 500)
        return world.instant() - began
    }

    func pause(milliseconds: Int) async throws {
        try await world.sleep(world.instant() + .milliseconds(milliseconds))
    }
}

/// How a trial ended.
struct ChaosOutcome: Sendable {
    /// `nil`: something acknowledged never arrived.
    var drainedIn: Duration?
    /// Of the relay's graceful end; `nil` when it had to be killed.
    var exitStatus: Int32?
}
