import AdminIngress
import AtRest
import CoreMetrics
import Delivery
import Foundation
import NIOPosix
import PushModel
import PushTesting
import SQLiteStore
import ServiceLifecycle
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// What all relays of this process count into: the library can be told once only.
let sharedMetrics: PrometheusMetrics = {
    let metrics = PrometheusMetrics(help: Hosting.standard.metricHelp)
    MetricsSystem.bootstrap(metrics)
    return metrics
}()

/// A state directory, a configuration and simulated push services, on which relays can be started one after
/// the other.
final class RelayStage: Sendable {
    /// The apps and instances of most tests. `learn`, so that both of Apple's worlds are there.
    static let text = oneApp(
        serving: "[zulip-main], trusted_proxies: [127.0.0.1]",
        """
          zulip-main: { protocol: zulip, apps: [acme], keys: bouncer.keys, sign_up: open }

        """)

    /// A configuration with one app, `acme`, for both push services.
    ///
    /// - Parameters:
    ///   - listener: what the public listener serves, and its further keys; `nil`: there is none.
    ///   - more: further keys of the app's section of APNs, each with a comma and a blank behind it.
    ///   - instances: their lines, indented by two.
    static func oneApp(
        serving listener: String?, bundle: String = "org.acme.chat", app more: String = "",
        _ instances: String
    ) -> String {
        let door = listener.map { "  public: { bind: \"127.0.0.1:0\", serves: \($0) }\n" } ?? ""
        return """
            listeners:
            \(door)  admin: { bind: "127.0.0.1:0" }
            log: { level: debug }
            apps:
              acme:
                apns:
                  { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [\(bundle)],
                    \(more)environment: learn }
                fcm: { service_account: fcm.json }
            instances:

            """ + instances
    }

    let folder: TemporaryFolder
    let sandbox: Sandbox
    let log = Lines()
    private let text: String
    private let world: World
    private let hosting: Hosting
    /// Nostr relays beside the sandbox's own.
    private let others = Mutex<[(relay: NostrRelaySimulator, path: String)]>([])
    /// By which push services are called instead of their address; certificates have `localhost`.
    private let serviceName = Mutex<String?>(nil)

    var state: String { folder.path + "/state" }
    var apns: APNsSimulator { sandbox.production }
    var sandboxAPNs: APNsSimulator { sandbox.development }
    var fcm: FCMSimulator { sandbox.fcm }

    /// - Parameters:
    ///   - world: everybody's: that of the relays, and of the push services.
    ///   - prepare: puts files into the folder first.
    init(
        _ text: String = RelayStage.text, world: World = .live, hosting: Hosting = .standard,
        prepare: (String) throws -> Void = { _ in }
    ) async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.path + "/state", withIntermediateDirectories: true)
        try prepare(folder.path)
        self.folder = folder
        self.text = text
        self.world = world
        self.hosting = hosting
        sandbox = try await Sandbox.start(
            Self.read(text, folder.path, hosting), hosting, group: MultiThreadedEventLoopGroup.singleton,
            world: world
        ).0
    }

    /// Runs `body` with a stage, which is cleared away afterwards.
    static func with(
        _ text: String = RelayStage.text, world: World = .live, hosting: Hosting = .standard,
        prepare: (String) throws -> Void = { _ in },
        _ body: (RelayStage) async throws -> Void
    ) async throws {
        let stage = try await RelayStage(
            text, world: world, hosting: hosting, prepare: prepare)
        do {
            try await body(stage)
        } catch {
            await stage.stop()
            throw error
        }
        await stage.stop()
    }

    /// Runs `body` with a relay on a stage of its own, for tests that start one relay and end with it.
    static func running(
        _ text: String = RelayStage.text, world: World = .live, hosting: Hosting = .standard,
        prepare: (String) throws -> Void = { _ in }, hold: Duration = DeliveryLimits().hold,
        engine: @escaping @Sendable (any Engine) -> any Engine = { $0 },
        spans change: (inout Surroundings) -> Void = { _ in },
        _ body: (RunningRelay) async throws -> Void
    ) async throws {
        try await with(text, world: world, hosting: hosting, prepare: prepare) { stage in
            try await stage.run(hold: hold, engine: engine, spans: change, body)
        }
    }

    private func stop() async {
        for other in others.withLock(\.self) { await other.relay.stop() }
        await sandbox.stop()
    }

    /// Starts one more Nostr relay, at which relays that are started from now on listen too.
    func addNostrRelay(path: String = "") async throws -> NostrRelaySimulator {
        let relay = NostrRelaySimulator(
            authority: sandbox.authority, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        try await relay.start()
        others.withLock { $0.append((relay, path)) }
        return relay
    }

    private static func read(
        _ text: String, _ folder: String, _ hosting: Hosting
    ) throws -> RelayConfiguration {
        try ConfigurationLoader.read(
            text, file: folder + "/sealbell.yaml",
            ConfigurationRequest(state: folder + "/state", isSandbox: true), facts(home: folder), hosting)
    }

    /// A configuration of this stage, pointed at its push services.
    func configuration(_ changed: String? = nil) throws -> RelayConfiguration {
        var pointed = sandbox.point(try Self.read(changed ?? text, folder.path, hosting))
        let urls = others.withLock { others in
            others.compactMap { other in other.relay.url.map { $0 + other.path } }
        }
        for index in pointed.instances.indices {
            guard var marmot = pointed.instances[index].marmot else { continue }
            marmot.relays += urls
            pointed.instances[index].settings = marmot
        }
        if let name = serviceName.withLock(\.self) {
            func named(_ base: HTTPSBase?) -> HTTPSBase? { base.map { HTTPSBase(host: name, port: $0.port) } }
            for index in pointed.apps.indices {
                var app = pointed.apps[index]
                let (apple, sandbox, google) = (app.apns?.url, app.apns?.sandboxURL, app.fcm?.url)
                app.apns?.url = named(apple)
                app.apns?.sandboxURL = named(sandbox)
                app.fcm?.url = named(google)
                pointed.apps[index] = app
            }
        }
        return pointed
    }

    /// Puts another key in the place of Apple's, at both of Apple's worlds and for relays that read it anew.
    func replaceAPNsKey() throws {
        let fresh = APNsKey()
        for world in [apns, sandboxAPNs] { try world.register(fresh.registration()) }
        try writeFile(
            state + "/sandbox/A1B2C3D4E5-F6G7H8I9J0.p8", Array(fresh.privateKeyPEM.utf8), replacing: true)
    }

    /// The file of the database that the configuration names.
    func database() throws -> String {
        guard case .sqlite(let path) = try configuration().store.engine else { throw FileFault.missing }
        return path
    }

    /// Opens the database beside no relay, and closes it behind `body`.
    func opened<Value>(_ body: (SQLiteStore) async throws -> Value) async throws -> Value {
        let store = try SQLiteStore(
            path: database(), owner: OwnerID(Digest16(high: 1, low: 2)), world: .live)
        let value = try await body(store)
        try store.close()
        return value
    }

    /// The sealed bodies of every record of a space, as they stand in the file.
    func bodies(of space: String) async throws -> [[UInt8]] {
        try await opened { store in
            try await store.page(.space(space), after: 0, limit: 100, now: World.live.now()).map(\.body)
        }
    }

    /// From now on relays know push services by that name.
    func callServices(_ name: String) { serviceName.withLock { $0 = name } }

    /// What the admin listener asks for, where the stage's own configuration has a token for it.
    func adminHeaders() throws -> [(name: String, value: Secret)] {
        guard let file = try configuration().adminTokenFile else { return [] }
        let token = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").joined()
        return [("Authorization", Secret("Bearer \(token)".utf8))]
    }

    /// Starts a relay, lets `body` use it, and stops it as SIGTERM would.
    ///
    /// - Parameters:
    ///   - changed: another text than the stage's.
    ///   - hold: how long a call is held that finds no room, or no store.
    ///   - change: for tests of a span, since those that they do not set are patient.
    func run(
        _ changed: String? = nil, hold: Duration = DeliveryLimits().hold,
        engine: @escaping @Sendable (any Engine) -> any Engine = { $0 },
        spans change: (inout Surroundings) -> Void = { _ in },
        _ body: (RunningRelay) async throws -> Void
    ) async throws {
        let log = log
        let sink = LogSink(level: .debug, form: .json, now: world.now, write: { log.add($0) })
        var around = Surroundings(
            hosting: hosting, group: MultiThreadedEventLoopGroup.singleton, world: world,
            journal: sink.journal,
            metrics: sharedMetrics)
        around.web = WebOptions(allowed: ["127.0.0.0/8"].compactMap { AddressBlock($0) })
        (around.web.connectDeadline, around.web.leastDeadline) = (.seconds(600), .seconds(600))
        around.engine = engine
        around.limits = .patient
        around.spans = .patient
        around.limits.hold = hold
        change(&around)
        // A rotation takes seconds of waiting on purpose.
        around.rotation.every = .milliseconds(50)
        around.rotation.settling = .milliseconds(100)
        let relay = try await Relay.open(configuration(changed), around)
        let urls = try await relay.listen()
        let running = RunningRelay(stage: self, relay: relay, urls: urls)
        let group = ServiceGroup(
            services: Clockwork.marked(relay.services),
            logger: silentLogger)
        try await beside(group.run, stop: group.triggerGracefulShutdown, clean: relay.close) {
            try await body(running)
        }
    }
}

/// A relay that serves, and the ways to speak to it.
struct RunningRelay: Sendable {
    let stage: RelayStage
    let relay: Relay
    let urls: [String: String]

    var bouncerKey: String { relay.publicKeys["zulip-main"]?.first ?? "" }

    func door(_ listener: String = "public", authority: String? = nil) throws -> LocalCall {
        try #require(LocalCall(patient: urls[listener], authority: authority))
    }

    func admin(_ path: String) async throws -> LocalCall.Answer {
        try await door("admin").ask("GET", path, headers: try stage.adminHeaders())
    }

    /// Owed pushes, as the admin listener tells.
    func owed() async throws -> Int64 {
        let status = try JSONValue.parse(try await admin("/status").body)
        return try #require(status["outbox"]?["rows"]?.int64)
    }

    /// Pushes on their way, as the admin listener tells.
    func inFlight() async throws -> Int64 {
        let status = try JSONValue.parse(try await admin("/status").body)
        return try #require(status["lanes"]?.array).reduce(0) { $0 + ($1["in_flight"]?.int64 ?? 0) }
    }

    /// Outcomes that the store has not taken yet, as the metrics tell.
    func settleBacklog() async throws -> Double {
        let text = String(decoding: try await admin("/metrics").body, as: UTF8.self)
        let name = "sealbell_settle_backlog "
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name) })
        return try #require(line.split(separator: " ").last.flatMap { Double($0) })
    }

    /// Returns when nothing is owed any more.
    func drained(file: String = #fileID, line: Int = #line) async throws {
        try await asked(for: "an empty outbox", file: file, line: line) { try await owed() == 0 }
    }
}
