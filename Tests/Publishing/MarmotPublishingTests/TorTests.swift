import DialTesting
import Dialling
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing

@testable import MarmotPublishing

@Suite("Publishing through Tor", .timeLimit(.minutes(30)))
struct TorTests {
    @Test("Every trigger and look-up has SOCKS credentials of its own, and no name is looked up here")
    func isolation() async throws {
        let names = NamedAddresses("127.0.0.1")
        let rig = try await PublishingRelayRig(dialling: DialOptions(resolver: names))
        let proxy = try await SOCKSProxy(leadingTo: rig.relays[0].port)
        let relay = "ws://\(String(repeating: "a", count: 56)).onion"
        rig.publishList([relay])
        let web = ScriptedWeb()
        let publisher = try rig.publisher(
            lookUp: [relay], tor: .init(host: "tor.test", port: proxy.port), web: web)
        for _ in 0..<3 { #expect(await missed(publisher, [try rig.token(.pushV1)]) == nil) }
        let asked = proxy.asked
        #expect(asked.count == 4, "a look-up and three triggers")
        #expect(Set(asked.map(\.username)).count == 4 && Set(asked.map(\.password)).count == 4)
        #expect(asked.allSatisfy { $0.host == relay.dropFirst(5) && $0.port == 80 })
        #expect(asked.allSatisfy { !$0.username.isEmpty && !$0.password.isEmpty })
        #expect(Set(names.asked) == ["tor.test"] && web.requests.value.isEmpty)
        #expect(rig.wraps().count == 3)
        try await proxy.close()
        await rig.stop()
    }

    @Test("Without the proxy nothing goes another way, and it is said")
    func noProxy() async throws {
        let rig = try await PublishingRelayRig()
        let publisher = try rig.publisher(
            lookUp: [], builtIn: [rig.server: rig.urls], tor: .init(host: "127.0.0.1", port: 1))
        let error = try #require(await missed(publisher, [try rig.token()]))
        #expect(error.servers[0].relays.map(\.answer) == [.torFailed])
        #expect(error.servers[0].sentence == WakeReport.noTor)
        #expect(rig.relays[0].counters.connections == 0)
        await rig.stop()
    }

    @Test("A proxy that refuses the target is told apart from a relay that does")
    func refusal() async throws {
        let rig = try await PublishingRelayRig()
        let proxy = try await SOCKSProxy(leadingTo: nil)
        let publisher = try rig.publisher(
            lookUp: [], builtIn: [rig.server: rig.urls], tor: .init(host: "127.0.0.1", port: proxy.port))
        let error = try #require(await missed(publisher, [try rig.token()]))
        #expect(error.servers[0].relays.map(\.answer) == [.torFailed])
        let names = Set(proxy.asked.map(\.username))
        #expect(proxy.asked.count == 3 && names.count == 3, "a look-up and two tries, each on its own")
        try await proxy.close()
        await rig.stop()
    }
}
