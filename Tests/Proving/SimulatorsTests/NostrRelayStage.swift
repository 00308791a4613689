import EventLoops
import MarmotPush
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WebSocket

@testable import Simulators

/// A simulated Nostr relay, keys, and events of theirs.
struct NostrRelayStage {
    let clock = ManualClock()
    let relay: NostrRelaySimulator
    let authority: CertificateAuthority?
    let alice = Secp256k1KeyPair.generate(.live)
    let bob = Secp256k1KeyPair.generate(.live)

    init(
        isSecure: Bool = false, _ change: (inout NostrRelayConfiguration) -> Void = { _ in }
    ) async throws {
        var configuration = NostrRelayConfiguration()
        change(&configuration)
        var world = World.live
        let clock = clock
        world.now = { clock.now }
        authority = isSecure ? try CertificateAuthority() : nil
        relay = NostrRelaySimulator(
            configuration, authority: authority, world: world,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        try await relay.start()
    }

    var now: Int64 { clock.now.seconds }

    /// An event by Alice unless told otherwise, `age` seconds old.
    func event(
        kind: Int = 1, age: Int64 = 0, tags: [[String]] = [], _ content: String = "",
        by pair: Secp256k1KeyPair? = nil
    ) -> NostrEvent {
        .signed(
            kind: kind, createdAt: now - age, tags: tags, content: Secret(Array(content.utf8)),
            by: pair ?? alice, auxiliary: World.live.randomBytes(32))
    }

    /// A gift wrap for a key; what is inside is nobody's matter here.
    func wrap(for key: XOnlyKey, age: Int64 = 0, _ content: String = "wrap") -> NostrEvent {
        event(kind: NostrKind.giftWrap, age: age, tags: [["p", key.hex]], content)
    }

    func join(
        _ change: (inout WebSocketLimits) -> Void = { _ in }
    ) async throws -> NostrParty {
        var limits = WebSocketLimits()
        // Only a relay that does not answer at all can miss them; a test of a deadline sets that one.
        limits.connectDeadline = .seconds(600)
        limits.writeDeadline = .seconds(600)
        limits.pingAfterSilence = .seconds(600)
        limits.pongDeadline = .seconds(600)
        change(&limits)
        let executor = LoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
        let client = try WebSocketClient(
            executor: executor, limits: limits, certificates: authority.map { Array($0.certificatePEM.utf8) })
        let url = try #require(relay.url)
        return NostrParty(connection: try await client.connect(try WebSocketAddress(url)), url: url)
    }
}

/// A client of a relay that says and hears one message at a time.
struct NostrParty: Sendable {
    let connection: WebSocketConnection
    let url: String

    func say(_ message: NostrMessage.FromClient) async throws {
        try await say(bytes: message.serialized().reveal { Array($0) })
    }

    func say(bytes: [UInt8]) async throws { try await connection.send(.text(ByteBuffer(bytes: bytes))) }

    /// The next message, in words: `EVENT name id`, `OK id flag text`, `EOSE name`, …; `nil` at the end.
    func hear() async throws -> String? {
        switch try await message() {
        case nil: nil
        case .event(let name, let event): "EVENT \(name) \(short(event.id))"
        case .ok(let id, let flag, let text): "OK \(short(id)) \(flag) \(text)"
        case .endOfStored(let name): "EOSE \(name)"
        case .closed(let name, let text): "CLOSED \(name) \(text)"
        case .notice(let text): "NOTICE \(text)"
        case .challenge: "AUTH"
        }
    }

    func message() async throws -> NostrMessage.FromRelay? {
        let message = try await bounded("a message of a simulated relay") { try await connection.receive() }
        return try message.map { message in
            try message.bytes.withUnsafeReadableBytes { try NostrMessage.FromRelay.parse($0) }
        }
    }

    func publish(_ event: NostrEvent) async throws -> String? {
        try await say(.event(event))
        return try await hear()
    }

    /// Expects these words, in this order.
    func expect(_ words: String?..., sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for word in words {
            let heard = try await hear()
            #expect(heard == word, sourceLocation: sourceLocation)
        }
    }

    func authenticate(
        _ challenge: String, by pair: Secp256k1KeyPair, at time: Int64, relay: String? = nil
    ) async throws -> NostrEvent {
        let event = AuthEvent.make(
            relay: relay ?? url, challenge: challenge, at: time, by: pair,
            auxiliary: World.live.randomBytes(32))
        try await say(.authenticate(event))
        return event
    }

    func challenge() async throws -> String {
        guard case .challenge(let text) = try await message() else { throw NoChallenge() }
        return text
    }

    struct NoChallenge: Error {}
}

/// Enough of an id to tell events apart.
func short(_ id: [UInt8]) -> String { id.prefix(6).map { String($0, radix: 16) }.joined() }
