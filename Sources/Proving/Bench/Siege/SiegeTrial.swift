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
        let service = try await ChaosService(authority: CertificateAuthority(), group: group)
        var relay = RelayPlan(
            executable: plan.executable, directory: plan.directory, apnsURL: service.apnsURL,
            authority: service.authorityPEM, apnsKey: service.apnsKey.privateKeyPEM)
        (relay.team, relay.keyID) = (service.apnsKey.team, service.apnsKey.keyID)
        relay.hasAdmin = true
        relay.fcm = service.fcm
        relay.pushesPerMinute = SiegePlan.pushesPerMinute
        relay.wrapper = ["/usr/bin/prlimit", "--nofile=\(SiegePlan.openFiles):\(SiegePlan.openFiles)"]
        let stage = try RelayStage(relay, world: world)
        do {
            let ledgers = try await siege(stage, service)
            await service.stop()
            return SiegeLedger.report(ledgers, plan)
        } catch {
            await stage.kill()
            await service.stop()
            throw error
        }
    }

    private func siege(
        _ stage: RelayStage, _ service: ChaosService
    ) async throws -> [(attack: SiegeAttack, ledger: SiegeLedger)] {
        try stage.launch()
        let address = try await stage.ready(within: SiegePlan.startSpan)
        guard let admin = RelayStage.port(of: "admin", state: stage.plan.stateDirectory) else {
            throw BenchError(.relayNotReady)
        }
        var origin = stage.makeOrigin(at: address)
        let devices = try [PushService.apns, .fcm].map { try origin.addDevices(SiegePlan.devices, $0) }
        for book in origin.signUp() + devices { try await book.setUp(at: address, group.next()) }
        for device in origin.devices { service.register(device, bundle: stage.plan.bundle) }
        let scene = SiegeScene(
            trial: self, address: address, admin: admin, origin: origin, stage: stage, service: service)
        var ledgers: [(SiegeAttack, SiegeLedger)] = []
        for attack in RelayPlan.load.attacks {
            state.withLock { $0 = SiegeLedger() }
            try await scene.endure(attack)
            let ledger = note { $0 }
            say("\(attack.words): \(ledger.row)")
            ledgers.append((attack, ledger))
            try await world.sleep(world.instant() + SiegePlan.calm)
        }
        guard await stage.stop(within: SiegePlan.stopSpan) == 0 else { throw BenchError(.processFault) }
        return ledgers
    }
}
