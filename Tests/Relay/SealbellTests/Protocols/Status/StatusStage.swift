import NIOPosix
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import StatusPush
import Testing
import WakuIngress
import WebClient
import WireFormats

@testable import RelayProgram

extension RelayStage {
    /// One Status instance, `main`, with an app for both push services.
    ///
    /// - Parameter more: further keys of the instance, each with a comma and a blank before it.
    static func status(_ more: String = "") -> String {
        oneApp(
            serving: nil, bundle: "org.acme.status",
            "  main: { protocol: status, apps: [acme], key_file: status.key\(more) }\n")
    }

    /// An instance without an app, because the gorush at that port has the credentials.
    static func statusWithoutApps(gorush port: Int) -> String {
        """
        listeners:
          admin: { bind: "127.0.0.1:0" }
        log: { level: debug }
        instances:
          main: { protocol: status, key_file: status.key, gorush: { url: "http://127.0.0.1:\(port)" } }

        """
    }

    /// Runs `body` with a relay of that instance, which hears its node.
    static func statusRelay(
        _ more: String = "", _ body: (RunningRelay) async throws -> Void
    ) async throws {
        try await running(status(more)) { relay in
            try await relay.listens()
            try await body(relay)
        }
    }

    /// Runs `body` with a node of the sandbox's network of its own.
    func withWakuNode(_ body: (WakuNodeSimulator) async throws -> Void) async throws {
        let node = WakuNodeSimulator(
            on: sandbox.waku.network, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        node.turn { $0.cacheMessages = 5_000 }
        try await node.start()
        do { try await body(node) } catch {
            await node.stop()
            throw error
        }
        await node.stop()
    }
}

extension Sandbox {
    /// Status's network that stands beside every sandbox.
    var waku: StatusSandboxPeer {
        guard let peer = peer(StatusSandboxPeer.self) else { fatalError("a sandbox without a network") }
        return peer
    }
}

extension RunningRelay {
    /// The public key of an instance.
    func statusKey(_ instance: String = "main") throws -> PublicPoint {
        try #require(relay.publicKeys[instance]?.first.flatMap { StatusKeyFile.point($0) })
    }

    /// A figure of an instance's statistics.
    func status(_ name: String, of instance: String = "main") async throws -> JSONValue? {
        let answer = try await admin("/status/statistics?instance=\(instance)")
        return try JSONValue.parse(answer.body)[name]
    }

    /// Returns when such a figure has reached a value.
    func statusReaches(
        _ least: Int64, _ name: String, of instance: String = "main", file: String = #fileID,
        line: Int = #line
    ) async throws {
        try await asked(for: "\(least) of \(name)", file: file, line: line) {
            try await status(name, of: instance)?.int64 ?? 0 >= least
        }
    }

    /// Returns when the instance hears its node.
    func listens(_ instance: String = "main", file: String = #fileID, line: Int = #line) async throws {
        try await asked(for: "an instance that listens", file: file, line: line) {
            try await admin("/health/ready?instance=\(instance)").status == 200
        }
    }
}

/// A member of the network with a node of its own: phone and sender in one.
final class StatusMember {
    let node: WakuNodeSimulator
    let line: NodeLine
    let key: Secp256k1KeyPair
    /// As the push service knows it.
    let token: String
    private(set) var device: StatusDevice
    /// What it registers with next; ``token`` is its first.
    var deviceToken: DeviceToken
    /// What it registers with next.
    var topic = StatusMember.topic
    var origin: StatusOrigin

    static let topic = "org.acme.status"

    private init(_ node: WakuNodeSimulator, _ service: DeviceToken.Service) throws {
        self.node = node
        let url = try #require(node.url.flatMap { WakuNode($0) })
        line = NodeLine(
            node: url,
            web: HTTPSFetch(group: MultiThreadedEventLoopGroup.singleton, world: .live),
            world: .live, patience: .seconds(600))
        key = .generate(.live)
        let hex = Hex.encode(World.live.randomBytes(32))
        token = service == .apns ? hex : "c\(hex.prefix(20)):APA91b\(hex)\(hex)"
        deviceToken = service == .apns ? try .apns(hex: token) : try .fcm(token)
        device = try StatusDevice(StatusSetup(key: key.secret, bundleID: topic, servers: []))
        origin = try StatusOrigin(key: key.secret)
        origin.isSending = true
        // On a slow machine an answer takes longer than senders wait; then they ask once more, or give up.
        origin.answerWait = .seconds(45)
    }

    /// Runs `body` with a member that hears the network.
    static func with(
        _ stage: RelayStage, _ service: DeviceToken.Service = .apns,
        _ body: (StatusMember) async throws -> Void
    ) async throws {
        try await stage.withWakuNode { node in
            let member = try StatusMember(node, service)
            try await member.line.open()
            try await body(member)
        }
    }

    /// The same of two members, the second of whom has an iPhone.
    static func two(
        _ stage: RelayStage, _ service: DeviceToken.Service = .apns,
        _ body: (StatusMember, StatusMember) async throws -> Void
    ) async throws {
        try await with(stage, service) { one in try await with(stage) { try await body(one, $0) } }
    }

    /// Registers at servers, until each has answered or `isEnough`.
    @discardableResult
    func register(
        at servers: [PublicPoint], until isEnough: ([StatusInstallation.Event]) -> Bool = { _ in false }
    ) async throws -> [StatusInstallation.Event] {
        try set(servers)
        return try await line.settle(&device, until: isEnough)
    }

    /// Another run of the app: with what was kept, these servers, and its token.
    func set(_ servers: [PublicPoint]) throws {
        let keys = try servers.map { try RelayKey(text: StatusKeyFile.publicText($0)) }
        let setup = try StatusSetup(key: key.secret, bundleID: topic, servers: keys)
        device = try StatusDevice(setup, keeping: device.kept)
        try device.apply(StatusPush.StatusSettings())
        try device.use(token: deviceToken)
    }

    /// Publishes what is due, and hears of nothing.
    func publish() async throws {
        for call in device.due(at: World.live.now()) {
            for answer in try await line.answers(to: call) {
                device.answered(answer, to: call, at: World.live.now())
            }
        }
    }

    /// What servers said of it since.
    func settle() async throws -> [StatusInstallation.Event] { try await line.settle(&device) }

    func leave() async throws -> [StatusInstallation.Event] {
        try device.use(token: nil)
        return try await line.settle(&device)
    }

    /// Sends somebody a message, and has servers push it.
    func tell(_ other: PublicPoint, _ text: String) async throws -> StatusDispatch.Outcome? {
        _ = try origin.notify(
            StatusNotification(
                messageID: Secret(World.live.randomBytes(32)), .direct, content: Secret(text.utf8)),
            to: [other], at: World.live.now())
        return try await line.settle(&origin).first?.outcome
    }

    /// The text in a delivery, which must be for this member.
    func text(_ delivery: Delivery) throws -> String? {
        try opened(Secret(delivery.body))?.content?.reveal { String(decoding: $0, as: UTF8.self) }
    }

    /// What is to be shown of a push; JSON as a push service delivers it.
    func opened(_ json: Secret, isStored: Bool = false) throws -> StatusContent? {
        let opened = try device.open(Delivered(json: json), at: World.live.now())
        guard case .show(let message) = opened else { return nil }
        if isStored { device.stored(message) }
        return message
    }

    var point: PublicPoint { key.point }
}

extension Settled {
    /// What servers said.
    var outcome: StatusDispatch.Outcome {
        reached + missed > 0 ? .taken(installations: reached, failed: missed) : .noToken
    }
}

extension StatusDispatch.Outcome {
    static let delivered = StatusDispatch.Outcome.taken(installations: 1, failed: 0)
}
