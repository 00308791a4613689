import EventLoops
import Foundation
import MarmotPublishing
import MarmotPush
import NIOPosix
import NostrIngress
import PushModel
import Secp256k1Keys
import Testing
import WebSocket
import WireFormats

/// Publishes what our origin makes at relays that others wrote, for a server that others play: what
/// `make interop` asks for. It names `SEALBELL_ORIGIN_SERVER` (the server's key), `…_RELAYS` (where its list
/// is looked up), `…_INTO` (a file for what was sent), and where a proxy is to be used `…_SOCKS`, `…_CA`.
@Suite("Our origin at foreign relays", .timeLimit(.minutes(30)))
struct ForeignOriginTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let server = environment["SEALBELL_ORIGIN_SERVER"].flatMap { text in
        // What is no hex is no key, and then nothing runs.
        try? Hex.decode(Array(text.utf8))
    }
    private static let deadline = Duration.seconds(30)

    private struct Stage {
        let server: XOnlyKey
        let relays: [NostrRelay]
        let file: String
        let publisher: NostrPublisher

        init() throws {
            let environment = ForeignOriginTests.environment
            server = try #require(ForeignOriginTests.server.flatMap { XOnlyKey($0) })
            relays = try #require(environment["SEALBELL_ORIGIN_RELAYS"]).split(separator: ",")
                .map { try NostrRelay(String($0)) }
            file = try #require(environment["SEALBELL_ORIGIN_INTO"])
            let port = environment["SEALBELL_ORIGIN_SOCKS"].flatMap { Int($0) }
            let authority = try environment["SEALBELL_ORIGIN_CA"].map { path in
                Array(try Data(contentsOf: URL(fileURLWithPath: path)))
            }
            let client = try WebSocketClient(
                executor: LoopExecutor(MultiThreadedEventLoopGroup.singleton.next()), certificates: authority)
            publisher = NostrPublisher(
                client: client, proxy: port.map { SOCKS5Proxy(host: "127.0.0.1", port: $0) }, world: .live)
        }
    }

    @Test("Triggers of every format reach every relay of the server's list", .enabled(if: server != nil))
    func publish() async throws {
        let stage = try Stage()
        let list = try #require(
            await stage.publisher.relayList(of: stage.server, from: stage.relays, within: Self.deadline))
        var directory = MarmotOriginRoutine.Directory()
        directory.lists[stage.server] = list
        var rows: [JSONValue] = []
        var random = SystemRandomNumberGenerator()
        for format in TokenFormat.allCases {
            let targets = try [
                DeviceTarget(.apns, token: Secret(World.live.randomBytes(32))),
                DeviceTarget(.fcm, token: Secret("fid:APA91b\(Hex.encode(World.live.randomBytes(66)))".utf8))
            ]
            let tokens = try targets.map { target in
                let box = try TokenBox.encrypt(target, to: stage.server, format, world: .live)
                return try GossipToken(format, box: box, server: stage.server)
            }
            for path in format == .seed ? [GiftWrap.Path.sealed, .direct] : [.sealed] {
                let sent = try MarmotOriginRoutine(directory, seedPath: path)
                    .notify(tokens, now: World.live.now(), using: &random)
                for trigger in sent.triggers {
                    let relays = try trigger.relays.map { try NostrRelay($0) }
                    let outcomes = await stage.publisher.publish(
                        trigger.wrap, to: relays, within: Self.deadline)
                    #expect(outcomes == relays.map { _ in .accepted })
                    rows.append(row(trigger, targets, isSealed: path == .sealed))
                }
            }
        }
        try Data(JSONValue.array(rows).serialized()).write(to: URL(fileURLWithPath: stage.file))
    }

    private func row(
        _ trigger: MarmotOriginRoutine.Trigger, _ targets: [DeviceTarget], isSealed: Bool
    ) -> JSONValue {
        let tokens = targets.map { target in
            JSONValue.string(target.token.reveal { Hex.encode(Array($0)) })
        }
        return .object([
            "id": .string(Hex.encode(trigger.wrap.id)), "format": .string(trigger.format.rawValue),
            "sealed": .bool(isSealed), "tokens": .array(tokens),
            "relays": .array(trigger.relays.map { .string($0) })
        ])
    }
}
