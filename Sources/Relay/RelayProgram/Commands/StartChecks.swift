import AdminIngress
import NIOPosix
import PushModel

/// What stands between a configuration and a relay that starts with it, but for its addresses and what is in
/// its store. `config check`, `serve` and a reload ask here, so that what one calls a fault the other
/// refuses.
struct StartChecks {
    let configuration: RelayConfiguration
    let world: World
    private let hosting: Hosting
    private let credentials: String?

    init(_ configuration: RelayConfiguration, _ shell: Shell) {
        self.configuration = configuration
        world = shell.world
        hosting = shell.hosting
        credentials = shell.facts.environment["CREDENTIALS_DIRECTORY"]
    }

    /// Every file that the configuration names. A fault among them ends a start.
    func files() -> [Finding] {
        let checks = FileChecks(world.now, credentials: credentials)
        guard !configuration.isSandbox else {
            // It makes its own credentials and authorities at each start, and keys where there are none.
            return checks.check(configuration) { file in
                switch file.content.inSandbox {
                case .made: false
                case .madeOnce: isThere(file.file)
                case .needed: true
                }
            }
        }
        var machine = MachineChecks(configuration, world.now)
        machine.credentials = credentials
        var keys = machine.storageKeys()
        // Here the file is looked at for its own sake: a configuration that names it is at fault.
        keys.area = .files
        return checks.check(configuration) + [keys]
    }

    private func isThere(_ path: String) -> Bool {
        do throws(FileFault) { _ = try readSecret(path, limitBytes: credentialLimitBytes) } catch {
            return error != .missing
        }
        return true
    }

    /// The files, and where nothing is wrong with them a relay made of them in memory, which opens no store
    /// and takes no address.
    func all() async -> [Finding] {
        let files = files()
        guard !configuration.isSandbox, !files.contains(where: \.endsAStart) else { return files }
        var rehearsed = configuration
        rehearsed.store.engine = .memory
        var around = Surroundings(
            hosting: hosting,
            group: MultiThreadedEventLoopGroup.singleton, world: world, journal: .silent,
            metrics: PrometheusMetrics())
        around.isRehearsal = true
        do throws(CommandFailure) {
            let relay = try await Relay.open(rehearsed, around)
            await relay.close()
            return files
        } catch {
            return files + error.lines.map { .fault(.configuration, "serve", $0) }
        }
    }
}

extension Finding {
    /// `serve` does not start with it.
    var endsAStart: Bool { severity == .fault && (area == .configuration || area == .files) }
}
