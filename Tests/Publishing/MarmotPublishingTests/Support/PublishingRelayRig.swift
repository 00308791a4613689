import DialTesting
import Dialling
import EventLoops
import MarmotPush
import NIOPosix
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import WebSocket

@testable import MarmotPublishing

/// Simulated relays on sockets of their own, a server's key, and a client that no loaded machine hurries.
struct PublishingRelayRig {
    let relays: [NostrRelaySimulator]
    let key: Secp256k1KeyPair
    let client: WebSocketClient

    init(
        relays count: Int = 1, dialling: DialOptions = DialOptions(),
        _ knobs: (inout NostrRelayKnobs) -> Void = { _ in }
    ) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        var configuration = NostrRelayConfiguration()
        configuration.isSecure = false
        knobs(&configuration.knobs)
        key = .generate(.live)
        var bounds = WebSocketLimits()
        bounds.connectDeadline = .seconds(600)
        bounds.proxiedConnectDeadline = .seconds(600)
        bounds.writeDeadline = .seconds(600)
        bounds.pingAfterSilence = .seconds(600)
        bounds.pongDeadline = .seconds(600)
        client = try WebSocketClient(
            executor: LoopExecutor(group.next()), limits: bounds, dialling: dialling)
        var relays: [NostrRelaySimulator] = []
        for _ in 0..<count {
            let relay = NostrRelaySimulator(configuration, authority: nil, eventLoopGroup: group)
            try await relay.start()
            relays.append(relay)
        }
        self.relays = relays
    }

    var urls: [String] { relays.compactMap(\.url) }
    var server: XOnlyKey { key.publicKey }

    func stop() async { for relay in relays { await relay.stop() } }

    /// A wrap that a relay passes on; it opens for nobody.
    func wrap() -> NostrEvent {
        .signed(
            kind: NostrKind.giftWrap, createdAt: World.live.now().seconds, tags: [["p", server.hex]],
            content: Secret([UInt8](repeating: 0x61, count: 100)), by: .generate(.live),
            auxiliary: World.live.randomBytes(32))
    }

    /// The server says at a relay where it listens.
    func publishList(_ urls: [String], at relay: Int = 0, age: Int64 = 10, by pair: Secp256k1KeyPair? = nil) {
        relays[relay].inject(
            RelayList.event(
                relays: urls, at: World.live.now().seconds - age, by: pair ?? key,
                auxiliary: World.live.randomBytes(32)))
    }

    /// An encrypted token of some phone.
    func token(
        _ format: TokenFormat = .seed, to server: XOnlyKey? = nil, hint: String? = nil
    ) throws -> GossipToken {
        let target = try DeviceTarget(.apns, token: Secret(World.live.randomBytes(32)))
        let server = server ?? self.server
        return try GossipToken(
            format, box: try TokenBox.encrypt(target, to: server, format, world: .live), server: server,
            relayHint: hint)
    }

    /// A publisher whose waits are long where something comes, and short where nothing can.
    func publisher(
        lookUp: [String]? = nil, builtIn: [XOnlyKey: [String]] = [:], tor: MarmotPublisher.Tor? = nil,
        keeping kept: Secret? = nil, web: ScriptedWeb = ScriptedWeb(), world: World = .live,
        reachesLocalRelays: Bool = true, _ change: (inout PublishingLimits) -> Void = { _ in }
    ) throws -> MarmotPublisher {
        var settings = MarmotPublisher.Settings(lookUp: lookUp ?? urls, builtIn: builtIn, tor: tor)
        settings.reachesLocalRelays = reachesLocalRelays
        var limits = PublishingLimits()
        limits.grace = .milliseconds(50)
        limits.pause = .milliseconds(5)
        limits.lookUp = .seconds(600)
        limits.publication = .seconds(600)
        limits.publicationByTor = .seconds(600)
        change(&limits)
        return try MarmotPublisher(
            settings, keeping: kept, client: client, web: web, world: world, limits: limits)
    }

    /// Wraps that a relay has.
    func wraps(_ relay: Int = 0) -> [NostrEvent] {
        relays[relay].events.filter { $0.kind == NostrKind.giftWrap }
    }

    /// How many tokens of the wraps open, all together.
    func opened(_ wraps: [NostrEvent]) throws -> Int {
        try wraps.reduce(0) { sum, wrap in
            // A decoy opens for nobody.
            let content = try TriggerContent(reading: try GiftWrap.unwrap(wrap, with: key).event)
            return sum
                + content.chunks.count { (try? TokenBox.decrypt($0, content.format, with: key)) != nil }
        }
    }
}

/// What ``MarmotPublisher/wake(_:)`` missed; `nil` when it missed nothing.
func missed(_ publisher: MarmotPublisher, _ tokens: [GossipToken]) async -> Unreached? {
    do throws(Unreached) {
        try await publisher.wake(tokens)
        return nil
    } catch { return error }
}
