import DialTesting
import Dialling
import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing

/// A chain daemon whose name has two addresses, of which one is dead.
@Suite("A chain daemon of two addresses", .timeLimit(.minutes(30)))
struct DaemonDiallingTests {
    static let orders = DeadAddress.Kind.allCases.flatMap { kind in [(kind, true), (kind, false)] }

    @Test("It is reached by the good one, whichever comes first", arguments: orders)
    func direct(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        let rig = try await SwarmRig()
        let endpoint = try #require(rig.network.daemonEndpoint)
        let port = try #require(endpoint.split(separator: ":").last.flatMap { Int($0) })
        let dead = try DeadAddress(kind, port: port)
        var limits = SwarmRig.limits
        limits.dialling = .swift(isDeadFirst ? [dead.address, .here] : [.here, dead.address])
        // Longer than a machine with much to do keeps the good one waiting.
        limits.dialling.limits.silence = .seconds(2)
        // What a loaded machine kept from arriving is asked for again while the test still waits.
        (limits.dialDeadline, limits.replyDeadline) = (.seconds(30), .seconds(30))
        let named = endpoint.replacing("127.0.0.1", with: "daemon.test")
        #expect(named != endpoint)
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress(limits, daemon: named)
        try await rig.run(ingress) {
            do { try await rig.shown(1, at: [0, 1, 2]) } catch {
                Issue.record("the link stands at \(ingress.statistics)")
                throw error
            }
            #expect(ingress.statistics.isDaemonConnected)
        }
    }

    @Test("A name that has no address is a daemon that does not answer, and is looked up again")
    func unresolved() async throws {
        let rig = try await SwarmRig()
        var limits = SwarmRig.limits
        limits.dialling = .swift([])
        let ingress = try rig.ingress(limits, daemon: "tcp://daemon.test:22025")
        let resolver = try #require(limits.dialling.resolver as? NamedAddresses)
        try await rig.run(ingress) {
            try await asked(for: "three look-ups") { resolver.asked.count >= 3 }
            #expect(!ingress.statistics.isDaemonConnected)
        }
    }
}
