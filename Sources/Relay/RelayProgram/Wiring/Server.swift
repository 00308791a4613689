import AdminIngress
import CoreMetrics
import EventLoops
import Logging
import NIOCore
import NIOPosix
import PushModel
import Simulators
import ServiceLifecycle
import UnixSignals
import WebClient

/// One run of `serve`: state directory, sandbox, relay, run file, signals.
struct Server {
    private let configuration: RelayConfiguration
    private let request: ConfigurationRequest
    private let shell: Shell
    private let log: LogSink
    var synchronous: Synchronous = .full
    var endsWithInput = false
    /// Made and run once everybody can connect.
    var welcome: (@Sendable (Relay) -> any Service)?
    /// Files and sockets that this process may open; `nil`: the system does not tell.
    var openFiles: Int?

    init(
        _ configuration: RelayConfiguration, _ request: ConfigurationRequest, _ shell: Shell, _ log: LogSink
    ) {
        self.configuration = configuration
        self.request = request
        self.shell = shell
        self.log = log
    }

    func serve(demo: Bool) async throws(CommandFailure) -> Ending {
        warn()
        let sockets = try InheritedSockets(shell.facts).match(configuration.listeners)
        let directory = try Self.claim(configuration.state)
        let group = MultiThreadedEventLoopGroup.singleton
        let metrics = PrometheusMetrics(help: shell.hosting.metricHelp)
        // Counters below the wiring find it by the library's own way; once in a process.
        MetricsSystem.bootstrap(metrics)
        var configuration = configuration
        var sandbox: Sandbox?
        let moved = configuration.isSandbox ? PortChecks(configuration).taken() : []
        if configuration.isSandbox {
            configuration.move(moved)
            tell(moved)
            (sandbox, configuration) = try await Sandbox.start(
                configuration, shell.hosting, group: group, world: shell.world)
        }
        var around = Surroundings(
            hosting: shell.hosting, group: group, world: shell.world, journal: log.journal, metrics: metrics)
        around.synchronous = synchronous
        around.sockets = sockets
        around.openFiles = openFiles
        if sandbox != nil { around.web = Self.sandboxWeb }
        let relay = try await Relay.open(configuration, around)
        // Before anybody can connect or learn the process id: without a handler, a signal would end the
        // process and lose the calls that it has read.
        let hangups = await UnixSignalsSequence(trapping: .sighup)
        let stops = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let urls = try await relay.listen()
        let file = RunFile(
            urls: urls.merging(Self.urls(of: sandbox), uniquingKeysWith: { $1 }),
            ca: sandbox?.authority.certificatePEM, publicKeys: relay.publicKeys,
            apps: configuration.bundles, tokenFile: configuration.adminTokenFile,
            purposes: sandbox?.purposes, protocols: shell.hosting.words(of: configuration.instances))
        try Self.write(file, state: configuration.state)
        defer { file.remove(state: configuration.state) }
        for (name, url) in urls.sorted(by: { $0.key < $1.key }) {
            log.tell(
                "listening", "\(name): \(url)",
                [(.listener, ConfiguredText(name)), (.url, ConfiguredText(url))])
        }
        let began = shell.world.instant()
        log.journal.note("started", facts)
        var held: DemoService?
        if demo, let sandbox {
            let demo = try Demo(
                shell.hosting,
                on: DemoStage(
                    configuration: configuration, urls: urls, publicKeys: relay.publicKeys, sandbox: sandbox,
                    group: group, world: shell.world))
            held = DemoService(demo: demo, urls: file.urls, state: configuration.state, shell: shell)
        }
        let ending = await run(relay, (sandbox, moved), held, file, (hangups, stops), on: group.next())
        await relay.close()
        await sandbox?.stop()
        withExtendedLifetime(directory) {}
        noteStop(ending, after: began.duration(to: shell.world.instant()))
        return ending
    }

    private func noteStop(_ ending: Ending, after span: Duration) {
        log.journal.note(
            "stopped", facts + [(.code, ending.logged), (.seconds, span.components.seconds)],
            level: ending == .done ? .info : .error)
    }

    /// A rehearsal stands beside the relay that it rehearses for.
    private func tell(_ moved: [ConfiguredName]) {
        for name in moved {
            guard let bind = configuration.listener(name)?.bind else { continue }
            log.tell(
                "listening elsewhere",
                "listeners.\(name): another program listens at \(bind), so the sandbox takes a free port.")
        }
    }

    private func warn() {
        for warning in configuration.warnings {
            log.tell("configuration warning", "\(warning.path): \(warning.coded)", level: .warning)
        }
        if let short = DescriptorBudget(configuration, limit: openFiles).shortage {
            log.tell("fewer connections than configured", "limits.connections: \(short)", level: .warning)
        }
    }

    /// What runs, on which store, by which configuration: in the first and the last line of a relay's log.
    private var facts: [(LogKey, any LogSafe)] {
        [
            (.version, Release.code), (.store, configuration.store.logged),
            (.configuration, ConfiguredText(configuration.file ?? "sandbox")),
            (.pid, Int(shell.facts.processID))
        ]
    }

    private func run(
        _ relay: Relay, _ rehearsal: (sandbox: Sandbox?, moved: [ConfiguredName]), _ demo: DemoService?,
        _ file: RunFile,
        _ signals: (hangups: UnixSignalsSequence, stops: UnixSignalsSequence),
        on loop: any EventLoop
    ) async -> Ending {
        var services: [any Service] = [HeapKeeper(world: shell.world)] + relay.services
        services.append(
            ReloadService(
                relay: relay, request: request, shell: shell, log: log, hangups: signals.hangups, file: file,
                state: configuration.state
            ) { configuration in
                var configuration = configuration
                configuration.move(rehearsal.moved)
                return rehearsal.sandbox?.point(configuration) ?? configuration
            })
        if let demo { services.append(demo) }
        if let welcome { services.append(welcome(relay)) }
        var members = services.map { ServiceGroupConfiguration.ServiceConfiguration(service: $0) }
        members.append(
            .init(
                service: StopService(signals: signals.stops),
                successTerminationBehavior: .gracefullyShutdownGroup))
        if endsWithInput {
            members.append(
                .init(service: InputEnd(), successTerminationBehavior: .gracefullyShutdownGroup))
        }
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: members, gracefulShutdownSignals: [], logger: Logger(label: "sealbell")))
        do {
            // Settling, renewing and sweeping run beside the sockets too: no thread but the loops' and the
            // store's.
            try await withTaskExecutorPreference(LoopExecutor(loop)) { try await group.run() }
            return .done
        } catch let error as any PushError {
            log.journal.note("relay ended", [.code: ErrorCode(error)], level: .error)
            return .failed
        } catch {
            log.journal.note("relay ended", [.code: ErrorCode("unexpected")], level: .error)
            return .software
        }
    }

    static func claim(_ path: String) throws(CommandFailure) -> StateDirectory {
        do throws(StateDirectory.Fault) {
            return try StateDirectory(claiming: path)
        } catch {
            switch error {
            case .taken:
                throw CommandFailure(.unavailable, "\(path): another relay serves from this directory.")
            case .file(let fault): throw CommandFailure(.configuration, "\(path): \(fault.sentence)")
            }
        }
    }

    static func write(_ file: RunFile, state: String) throws(CommandFailure) {
        do throws(FileFault) { try file.write(state: state) } catch {
            throw CommandFailure(.configuration, "\(joinPath(state, RunFile.name)): \(error.sentence)")
        }
    }

    /// The sandbox's own servers stand on loopback.
    static var sandboxWeb: WebOptions {
        WebOptions(allowed: ["127.0.0.0/8", "::1/128"].compactMap { AddressBlock($0) })
    }

    static func urls(of sandbox: Sandbox?) -> [String: String] {
        guard let sandbox else { return [:] }
        let control = sandbox.control.port.map { ["sandbox-control": "http://127.0.0.1:\($0)"] } ?? [:]
        return sandbox.servers.reduce(control) { $0.merging($1.urls, uniquingKeysWith: { $1 }) }
    }
}

extension RelayConfiguration {
    /// Gives these listeners any free port.
    mutating func move(_ names: [ConfiguredName]) {
        for index in listeners.indices where names.contains(listeners[index].name) {
            let host = listeners[index].bind.host
            let place = host.contains(":") ? "[\(host)]:0" : "\(host):0"
            listeners[index].bind = BindAddress(place) ?? listeners[index].bind
        }
    }
}

/// SIGTERM, SIGINT: ends, and the group with it.
struct StopService: Service {
    let signals: UnixSignalsSequence

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() { return }
    }
}
