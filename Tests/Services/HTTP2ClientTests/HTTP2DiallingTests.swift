import DialTesting
import Dialling
import HTTP2Client
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

/// A push service whose name has two addresses, of which one is dead.
@Suite("A push service of two addresses", .timeLimit(.minutes(30)))
struct HTTP2DiallingTests {
    static let orders = DeadAddress.Kind.allCases.flatMap { kind in [(kind, true), (kind, false)] }

    /// Sends one request to a good peer beside a dead address, perhaps through a proxy of such a name.
    private func send(
        _ kind: DeadAddress.Kind, deadFirst: Bool, isProxied: Bool = false,
        on group: MultiThreadedEventLoopGroup = .singleton
    ) async throws {
        let peer = try await RawPeer(on: group)
        let proxy = isProxied ? try await ConnectProxy(on: group) : nil
        let port = proxy?.port ?? peer.port
        let dead = try await group.next().submit { try DeadAddress(kind, port: port) }.get()
        let addresses = deadFirst ? [dead.address, .here] : [.here, dead.address]
        let client = try Client(
            dialling: .swift(addresses), port: peer.port,
            proxy: proxy.map { HTTP2Endpoint.Proxy(host: "proxy.test", port: $0.port) }, group: group)
        let answers = try await bounded("five answers") {
            try await client.running { try await $0.send(5, width: 5) }
        }
        #expect(answers.count == 5 && answers.allSatisfy { $0.status == 200 })
        let snapshot = client.pool.snapshot()
        #expect(snapshot.opened == 1 && snapshot.failed == 0)
        try await proxy?.close()
        try await peer.close()
    }

    @Test("Pushes leave by the good one, whichever comes first", arguments: orders)
    func direct(_ kind: DeadAddress.Kind, _ deadFirst: Bool) async throws {
        try await send(kind, deadFirst: deadFirst)
    }

    @Test("They do so where the proxy's name is such a one", arguments: orders)
    func proxied(_ kind: DeadAddress.Kind, _ deadFirst: Bool) async throws {
        try await send(kind, deadFirst: deadFirst, isProxied: true)
    }

    @Test(
        "They do so in a network without IPv6",
        .enabled(if: BareNetwork.refusal == nil, "needs a namespace"), arguments: orders, [false, true])
    func withoutIPv6(_ order: (kind: DeadAddress.Kind, deadFirst: Bool), _ isProxied: Bool) async throws {
        try await BareNetwork.with { group in
            try await send(order.kind, deadFirst: order.deadFirst, isProxied: isProxied, on: group)
        }
    }

    /// What an address may do that takes connections and is of no use.
    enum Useless: String, CaseIterable, CustomTestStringConvertible {
        case saysNoSettings, endsWithoutSettings, hasAnotherName, speaksOtherwise
        var testDescription: String { rawValue }
    }

    @Test("An address that comes half the way makes room for the other", arguments: Useless.allCases)
    func halfWay(_ useless: Useless) async throws {
        var script = RawPeer.Script()
        switch useless {
        case .saysNoSettings: script.opened = { _ in }
        case .endsWithoutSettings: script.opened = { $0.close() }
        case .hasAnotherName: break
        // A frame, and not SETTINGS: PING.
        case .speaksOtherwise:
            script.opened = { $0.send(RawHTTP2Frame(kind: 6, payload: [UInt8](repeating: 0, count: 8))) }
        }
        let peer = try await RawPeer()
        let certificate =
            useless == .hasAnotherName ? TestCertificate.otherName : TestCertificate.shared
        let other = try await RawPeer(
            script, certificate: certificate,
            host: "127.0.0.9", port: peer.port)
        let addresses = [IPAddress(v4: 0x7F00_0009), .here]
        let client = try Client(dialling: .swift(addresses), port: peer.port)
        let answer = try await bounded("an answer") {
            try await client.running { try await $0.send($0.request()) }
        }
        #expect(answer.status == 200 && other.seen.connections > 0 && other.seen.bodies.isEmpty)
        #expect(client.pool.snapshot().failed == 0)
        // By itself it is a failure that is told as what it is.
        let spy = LogSpy()
        let alone = try Client(dialling: .swift([addresses[0]]), port: peer.port, journal: spy.journal)
        guard useless != .saysNoSettings else { return try await close(peer, other) }
        try await alone.running { _ in await spy.until(contain: useless.code) }
        try await close(peer, other)
    }

    private func close(_ peers: RawPeer...) async throws { for peer in peers { try await peer.close() } }

    @Test("What worked is tried first when the connection has ended")
    func preferred() async throws {
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, _ in
            connection.answer(stream)
            connection.later(.zero) { $0.close() }
        }
        let peer = try await RawPeer(script)
        var useless = RawPeer.Script()
        useless.opened = { $0.close() }
        let other = try await RawPeer(useless, host: "127.0.0.9", port: peer.port)
        // Nothing but a failure makes the next address begin.
        let client = try Client(
            dialling: .patient([IPAddress(v4: 0x7F00_0009), .here]), port: peer.port)
        try await bounded("five connections") {
            try await client.running { client in
                while peer.seen.connections < 5 {
                    let answer = try await client.sendUntilAnswered(client.request())
                    #expect(answer.status == 200)
                }
            }
        }
        #expect(other.seen.connections == 1)
        try await close(peer, other)
    }

    @Test("A pool that stops while it dials leaves at once")
    func stopped() async throws {
        let peer = try await RawPeer()
        let swallowing = try DeadAddress(.swallowing, port: peer.port)
        let client = try Client(dialling: .patient([swallowing.address]), port: peer.port)
        // Its patience is ten minutes: who waits for the dial's own end never comes back.
        try await client.running { client in
            try await asked(for: "a dial") { client.pool.snapshot().failed == 0 }
        }
        #expect(client.pool.snapshot().opened == 0)
        try await peer.close()
    }
}

extension HTTP2DiallingTests.Useless {
    fileprivate var code: String {
        switch self {
        case .saysNoSettings, .endsWithoutSettings: "noSettings"
        case .hasAnotherName: "tlsFailed"
        case .speaksOtherwise: "protocolViolation"
        }
    }
}
