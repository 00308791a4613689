import Foundation
import NIOCore
import NIOPosix
package import PushModel
import Simulators
import Synchronization

/// Attacks a relay's listeners over loopback, one way after the other, while an origin that behaves well asks
/// beside it, and says what that one felt.
///
/// This process is attacker, origin and push service; the relay is the real program in a process of its own.
/// Attackers come from other addresses of 127.0.0.0/8 than the origin, so that they are other clients.
package final class SiegeTrial: Sendable {
    let plan: SiegePlan
    let world: World
    let group = MultiThreadedEventLoopGroup.singleton
    private let say: @Sendable (String) -> Void
    private let state = Mutex(SiegeLedger())

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: SiegePlan, world: World, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.world = world
        self.say = say
    }

    func note<Result: Sendable>(_ change: (inout SiegeLedger) -> Result) -> Result {
        state.withLock { change(&$0) }
    }

    /// - Returns: the report, and whether nobody but attackers lost a call.
    /// - Throws: `BenchError` when the trial could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        try plan.check()
        let authority = try CertificateAuthority()
        let service = try await ChaosService(authority: authority, group: group)
        let setting = ChaosSetting(
            service: service, authority: authority, bundle: RelayPlan.bundle, world: world, group: group)
        var parties: [any SiegeParty] = []
        return try await ending {
            await service.stop()
            for party in parties { await party.stop() }
        } after: {
            for kind in BenchProtocols.standard.sieges { parties.append(try await kind.init(setting)) }
            return try await siege(service, parties)
        }
    }

    private func siege(
        _ service: ChaosService, _ parties: [any SiegeParty]
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let attacks = try plan.chosen(of: RelayPlan.load.attacks + parties.flatMap(\.attacks))
        var relay = service.makePlan(executable: plan.executable, directory: plan.directory)
        relay.hasAdmin = true
        relay.fcm = service.fcm
        relay.others = parties.flatMap(\.instances)
        relay.pushesPerMinute = SiegePlan.pushesPerMinute
        relay.wrapper = ["/usr/bin/prlimit", "--nofile=\(SiegePlan.openFiles):\(SiegePlan.openFiles)"]
        let stage = try RelayProcess(relay, world: world)
        return try await ending {
            await stage.kill()
        } after: {
            SiegeLedger.report(try await siege(stage, service, attacks), plan)
        }
    }

    private func siege(
        _ stage: RelayProcess, _ service: ChaosService, _ attacks: [SiegeAttack]
    ) async throws -> [(attack: SiegeAttack, ledger: SiegeLedger)] {
        try stage.launch()
        let address = try await stage.ready(within: RelayProcess.startSpan)
        guard let admin = RelayProcess.port(of: "admin", state: stage.plan.stateDirectory) else {
            throw BenchError(.relayNotReady)
        }
        let origin = try await stage.signUp(
            apns: SiegePlan.devices, fcm: SiegePlan.devices, at: [service], through: address, group.next())
        let scene = SiegeScene(
            trial: self, address: address, admin: admin, origin: origin, stage: stage, service: service)
        var ledgers: [(SiegeAttack, SiegeLedger)] = []
        for (number, attack) in attacks.enumerated() {
            state.withLock { $0 = SiegeLedger() }
            try await scene.endure(attack, number)
            let ledger = note { $0 }
            say("\(attack.words): \(ledger.row)")
            ledgers.append((attack, ledger))
            try await world.sleep(world.instant() + SiegePlan.calm)
        }
        guard await stage.stop(within: SiegePlan.stopSpan) == 0 else { throw BenchError(.processFault) }
        return ledgers
    }
}
