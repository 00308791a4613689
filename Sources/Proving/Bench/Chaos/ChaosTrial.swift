import AtRest
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Simulators

/// Kills a relay again and again under load and counts what was lost.
///
/// This process is the push service (a judging simulator over real TLS and HTTP/2) and the origin; the
/// relay is the real program in a process of its own. Each push carries a ciphertext that exists once, by
/// which its arrivals are counted. A request that got no answer is asked again with the same bytes. Protocols
/// with other rules go beside the load (``ChaosCompanion``).
package final class ChaosTrial: Sendable {
    let plan: ChaosPlan
    let shared: TrialRun
    let loads: [any LoadProtocol]
    private let companionKinds: [any ChaosCompanion.Type]
    private let say: @Sendable (String) -> Void

    var random: TrialRandom { shared.random }
    var world: World { shared.world }

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: ChaosPlan, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        let protocols = BenchProtocols.standard
        loads = protocols.loads
        // Power cuts and traces are about what is written; what goes beside the load writes nothing.
        companionKinds = plan.powerCuts == nil && plan.trace == nil ? protocols.companions : []
        self.say = say
        shared = TrialRun(seed: plan.seed)
    }

    /// - Returns: the report, and whether nothing was violated.
    /// - Throws: `BenchError` when the trial could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        let group = MultiThreadedEventLoopGroup.singleton
        let authority = try CertificateAuthority()
        let service = try await ChaosService(authority: authority, group: group)
        let setting = ChaosSetting(
            service: service, authority: authority, bundle: RelayPlan.bundle, world: world, group: group)
        var companions: [any ChaosCompanion] = []
        for kind in companionKinds { companions.append(try await kind.init(setting)) }
        let database = plan.store == .postgres ? try await makeDatabase() : nil
        let stage = try makeStage(service, companions, database)
        let parts = Parts(stage: stage, service: service, companions: companions, database: database)
        let outcome = try await ending {
            await stage.kill()
            await service.stop()
            for companion in companions { await companion.stop() }
            await database?.end()
        } after: {
            try await trial(parts, group)
        }
        let ledger = shared.ledger { $0 }
        if let trace = plan.trace {
            let names = SentNames(try KeyFile.read("\(stage.plan.keys)/storage.keys"))
            try ChaosReport.write(ledger, to: trace.ledger) { sent in
                PushID(text: sent).map { names.row(sentAs: $0).text }
            }
        }
        return ChaosReport.make(plan, ledger, companions, outcome)
    }

    /// What the trial is made of.
    private struct Parts: Sendable {
        let stage: RelayProcess
        let service: ChaosService
        let companions: [any ChaosCompanion]
        let database: PostgresCluster?
    }

    private func makeDatabase() async throws -> PostgresCluster {
        // The shim for power cuts knows files that are written, and none that are mapped.
        try await PostgresCluster.start(.init(settings: ["dynamic_shared_memory_type": "posix"]))
    }

    private func makeStage(
        _ service: ChaosService, _ companions: [any ChaosCompanion], _ database: PostgresCluster?
    ) throws -> RelayProcess {
        var relay = service.makePlan(executable: plan.executable, directory: plan.directory)
        // FCM knows no id of ours, so a traced run, which joins pushes by it, does without.
        relay.fcm = plan.trace == nil ? service.fcm : nil
        relay.loads = loads
        relay.others = companions.map(\.instance)
        relay.store =
            switch (database, plan.withoutSync) {
            case (nil, false): .sqlite
            case (nil, true): .sqliteWithoutSync
            case (let database?, false): .postgres(url: database.url)
            case (let database?, true): .postgresWithoutSync(url: database.url)
            }
        if let cuts = plan.powerCuts, database == nil {
            try makeDirectory("\(plan.directory)/shadow")
            relay.environment = [
                "LD_PRELOAD": cuts.shim, "FORGET_DIR": relay.stateDirectory,
                "FORGET_SHADOW": "\(plan.directory)/shadow", "FORGET_EARLY": String(cuts.earlyPercent)
            ]
        }
        if let trace = plan.trace {
            relay.wrapper = [
                "/usr/bin/strace", "-f", "-yy", "-xx", "-s", "70000", "--seccomp-bpf", "-o", trace.file, "-e",
                "trace=write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync"
            ]
        }
        return try RelayProcess(relay, world: world)
    }

    private func trial(_ parts: Parts, _ group: any EventLoopGroup) async throws -> ChaosOutcome {
        let (stage, service, companions) = (parts.stage, parts.service, parts.companions)
        try stage.launch()
        shared.address = try await stage.ready(within: RelayProcess.startSpan)
        let origins = try await makeOrigins(stage, service, group)
        if let cuts = plan.powerCuts { try await restart(parts, cuts) }
        if plan.trace != nil { shared.ledger { $0.keepsAnswers = true } }
        let collect: TrialRun.Part = { try await self.shared.collect([service], self.loads, companions) }
        let callers = shared.callers(plan.workers, plan.manners, group) { number in
            let place = ChaosPlan.place(ofCaller: number, among: loads.count)
            return (loads[place], origins[place])
        }
        return try await shared.live(
            watchers: [collect]
                + companions.map { companion -> TrialRun.Part in { await companion.watch() } },
            callers: callers
                + companions.map { companion -> TrialRun.Part in { try await companion.publish(self) } }
        ) {
            if let trace = plan.trace {
                service.failSometimes()
                while shared.ledger({ $0.acknowledgedRequests }) < trace.requests {
                    try await pause(milliseconds: 20)
                }
            } else {
                try await killAgainAndAgain(parts)
            }
            service.answerWell()
        } after: {
            // Where losing is what is to be shown, there is no use in waiting for what will not come.
            // (At a server, what the dead owed is free when their leases have ended.)
            let hopeless: Duration = plan.store == .postgres ? .seconds(45) : .seconds(15)
            let drained = try await shared.drain(within: plan.withoutSync ? hopeless : ChaosPlan.drainSpan)
            for companion in companions { try await companion.finish(self) }
            return ChaosOutcome(drainedIn: drained, exitStatus: await stage.stop(within: .seconds(30)))
        }
    }

    /// Ends the relay in order and starts it again: the set-up is on the disk then, whatever the relay
    /// syncs, so that what a cut loses is pushes.
    private func restart(_ parts: Parts, _ cuts: ChaosPlan.PowerCuts) async throws {
        let stage = parts.stage
        shared.address = nil
        guard await stage.stop(within: .seconds(30)) == 0 else { throw BenchError(.relayNotReady) }
        if let database = parts.database {
            // Watched from here on: a cluster is made of a thousand files that nobody doubts.
            try await database.stop()
            try database.set(environment: [
                "LD_PRELOAD": try database.bring(cuts.shim), "FORGET_DIR": database.data,
                "FORGET_SHADOW": try database.makeDirectory("shadow"),
                // PostgreSQL counts on what ext4 and XFS do: a file's sync brings its name to the disk.
                "FORGET_ENTRIES": "file", "FORGET_STDIO": "lost", "FORGET_EARLY": String(cuts.earlyPercent)
            ])
            try await database.startAgain()
        } else {
            try await cut(cuts, parts)
        }
        try stage.launch()
        shared.address = try await stage.ready(within: RelayProcess.startSpan)
    }

    /// Signs up a server of each protocol and registers its devices, at the relay and at the push service.
    private func makeOrigins(
        _ stage: RelayProcess, _ service: ChaosService, _ group: any EventLoopGroup
    ) async throws -> [any LoadOrigin] {
        guard let address = shared.address else { throw BenchError(.relayNotReady) }
        var origins: [any LoadOrigin] = []
        for place in loads.indices {
            origins.append(
                try await stage.signUp(
                    place, apns: plan.devices, fcm: stage.plan.fcm == nil ? 0 : plan.devices / 2,
                    at: [service], through: address, group.next()))
        }
        return origins
    }

    /// Kills at random moments, most of them under load, some while the relay is still starting.
    private func killAgainAndAgain(_ parts: Parts) async throws {
        let (stage, service, companions) = (parts.stage, parts.service, parts.companions)
        for number in 1...max(1, plan.kills) {
            if random.below(6) > 0 {
                if shared.address == nil {
                    shared.address = try await stage.ready(within: RelayProcess.startSpan)
                }
                try await misbehave(service)
                // Every other one is killed before it listens, or while it is about to.
                if random.below(2) == 0 {
                    for companion in companions { try await companion.untilListening(self) }
                }
                try await pause(milliseconds: 20 + random.below(280))
            } else {
                try await pause(milliseconds: random.below(120))
            }
            let began = world.now()
            await stage.kill()
            if plan.powerCuts != nil { try await parts.database?.kill() }
            shared.address = nil
            try await shared.untilQuiet(service)
            for companion in companions { try await companion.killed(self) }
            shared.ledger { $0.happened(TrialFault(began: began, ended: world.now())) }
            if let cuts = plan.powerCuts {
                try await cut(cuts, parts)
                try await parts.database?.startAgain()
            }
            try stage.launch()
            if number % 50 == 0 { say("\(number) kills, \(shared.ledger { $0.items.count }) pushes") }
        }
        shared.address = try await stage.ready(within: RelayProcess.startSpan)
    }

    /// Where losing is what is to be shown, there must be something to lose: nothing can be sent, and some
    /// requests have been answered. That is waited for, too, where a start takes longer than the load would
    /// last.
    private func misbehave(_ service: ChaosService) async throws {
        if plan.withoutSync { service.fail() } else { service.misbehave(random) }
        guard plan.withoutSync || (plan.powerCuts != nil && plan.store == .postgres) else { return }
        let (answered, until) = (shared.ledger { $0.acknowledgedRequests }, world.instant() + .seconds(5))
        while shared.ledger({ $0.acknowledgedRequests }) < answered + 10, world.instant() < until {
            try await pause(milliseconds: 5)
        }
    }

    private func cut(_ cuts: ChaosPlan.PowerCuts, _ parts: Parts) async throws {
        let stage = parts.stage
        let (disk, shadow) =
            parts.database.map { ($0.data, "\($0.home)/shadow") }
            ?? (stage.plan.stateDirectory, "\(plan.directory)/shadow")
        let program = try ChildProcess(
            cuts.cut, [disk, shadow], environment: ["PATH": "/usr/bin:/bin"], log: stage.plan.logFile)
        guard await program.wait() == 0 else { throw BenchError(.processFault) }
    }

    func pause(milliseconds: Int) async throws { try await shared.pause(milliseconds: milliseconds) }
}

/// How a trial ended.
struct ChaosOutcome: Sendable {
    /// `nil`: something acknowledged never arrived.
    var drainedIn: Duration?
    /// Of the relay's graceful end; `nil` when it had to be killed.
    var exitStatus: Int32?
}
