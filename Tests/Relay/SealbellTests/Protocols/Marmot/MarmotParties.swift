import EventLoops
import Foundation
import MarmotPublishing
import MarmotPush
import NIOPosix
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Synchronization
import Testing
import WebClient
import WebSocket
import WireFormats

@testable import RelayProgram

/// Anyone who wakes phones through a running relay: it encrypts tokens, wraps triggers and publishes them.
struct MarmotSender {
    let server: XOnlyKey
    let stage: RelayStage
    let publisher: NostrPublisher
    let relay: NostrRelay

    init(_ running: RunningRelay, _ instance: String = "marmot-main") throws {
        try self.init(try #require(running.relay.publicKeys[instance]?.first), running.stage)
    }

    /// - Parameter key: the server's, in hex.
    init(_ key: String, _ stage: RelayStage) throws {
        self.stage = stage
        server = try #require(XOnlyKey(hex: key))
        let client = try WebSocketClient(
            executor: LoopExecutor(MultiThreadedEventLoopGroup.singleton.next()),
            certificates: Array(stage.sandbox.authority.certificatePEM.utf8))
        publisher = NostrPublisher(client: client, world: .live)
        relay = try NostrRelay(try #require(stage.sandbox.nostr.url))
    }

    /// Waits until the server listens.
    func ready(_ running: RunningRelay, _ instance: String = "marmot-main") async throws {
        try await asked(for: "a server that is ready") {
            try await running.admin("/health/ready?instance=\(instance)").status == 200
        }
    }

    func box(_ target: DeviceTarget, _ format: TokenFormat) throws -> Secret {
        try TokenBox.encrypt(target, to: server, format, world: .live)
    }

    /// A trigger of the format's form, and the wrap around it.
    func trigger(
        _ boxes: [Secret], _ format: TokenFormat, author: Secp256k1KeyPair = .generate(.live)
    ) throws -> (rumor: NostrEvent, wrap: NostrEvent) {
        let rumor = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: World.live.now().seconds, tags: format.triggerTags,
            content: try TriggerContent(format, boxes).serialized(), author: author.publicKey)
        return (rumor, try GiftWrap.wrap(sealing: rumor, by: author, to: server, world: .live))
    }

    /// A trigger for one device, wrapped.
    func wake(_ target: DeviceTarget, _ format: TokenFormat = .pushV1) throws -> NostrEvent {
        try trigger([try box(target, format)], format).wrap
    }

    /// A wrap with a right id and signature that says it is for the server, and is encrypted to another key.
    func junk() throws -> NostrEvent {
        let author = Secp256k1KeyPair.generate(.live)
        let rumor = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: 1, tags: [], content: Secret("[]".utf8),
            author: author.publicKey)
        let wrap = try GiftWrap.wrap(
            sealing: rumor, by: author, to: Secp256k1KeyPair.generate(.live).publicKey, world: .live)
        return .signed(
            kind: NostrKind.giftWrap, createdAt: wrap.createdAt, tags: [["p", server.hex]],
            content: wrap.content, by: .generate(.live), auxiliary: World.live.randomBytes(32))
    }

    func publish(_ wrap: NostrEvent) async {
        #expect(await publisher.publish(wrap, to: [relay], within: .seconds(600)) == [.accepted])
    }

    static func apple() throws -> (target: DeviceTarget, token: String) {
        let raw = World.live.randomBytes(32)
        return (try DeviceTarget(.apns, token: Secret(raw)), Hex.encode(raw))
    }

    static func google() throws -> (target: DeviceTarget, token: String) {
        let text =
            "c" + Hex.encode(World.live.randomBytes(10)) + ":APA91b" + Hex.encode(World.live.randomBytes(60))
        return (try DeviceTarget(.fcm, token: Secret(text.utf8)), text)
    }
}

/// The wall clock, set forward by a test; the rest of the world goes on as it is.
final class SkewedClock: Sendable {
    private let skew = Mutex(Duration.zero)

    func set(by span: Duration) { skew.withLock { $0 += span } }

    var world: World {
        var world = World.live
        world.now = { World.live.now() + self.skew.withLock { $0 } }
        return world
    }
}

extension RunningRelay {
    /// The sum of a metric's series that hold all the labels; 0 when there is none.
    func metric(_ name: String, _ labels: [String: String]) async throws -> Double {
        let page = try await admin("/metrics").text
        return page.split(separator: "\n").reduce(0) { sum, line in
            guard line.hasPrefix(name + "{"),
                labels.allSatisfy({ line.contains("\($0.key)=\"\($0.value)\"") }),
                let value = line.split(separator: " ").last.flatMap({ Double($0) })
            else { return sum }
            return sum + value
        }
    }

    /// Returns when a metric has reached a value. Each look is a request of its own, so nothing spins.
    func until(
        _ name: String, _ labels: [String: String], reaches least: Double, file: String = #fileID,
        line: Int = #line
    ) async throws {
        try await asked(for: "\(least) of \(name) with \(labels)", file: file, line: line) {
            try await metric(name, labels) >= least
        }
    }
}

extension MarmotSender {
    /// A server of which nobody has heard.
    static var stranger: XOnlyKey { Secp256k1KeyPair.generate(.live).publicKey }
}
