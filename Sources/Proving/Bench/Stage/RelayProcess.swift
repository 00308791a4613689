import AtRest
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import NIOCore
import Primitives
package import PushModel
import Synchronization
import WireFormats

/// A relay under trial: a real `sealbell serve` in a process of its own, which can be killed and started
/// again.
package final class RelayProcess: Sendable {
    /// Where a relay that is ready listens.
    package struct Address: Sendable, Hashable {
        package var pid: Int32
        package var host: String
        package var port: Int
    }

    /// How long a relay may take until it is ready.
    static let startSpan = Duration.seconds(60)

    package let plan: RelayPlan
    /// Those of the load, in the order of the plan.
    private let instances: [StagedInstance]
    private let world: World
    private let child = Mutex<ChildProcess?>(nil)

    /// Writes configuration and keys.
    ///
    /// - Parameter first: another relay at the same database, whose keys this one uses; `nil`: keys of its
    ///   own are made.
    /// - Throws: `.fileFault`.
    package init(_ plan: RelayPlan, keysOf first: RelayProcess? = nil, world: World) throws(BenchError) {
        var plan = plan
        if let first {
            plan.keysDirectory = first.plan.keys
            instances = first.instances
        } else {
            instances = plan.loads.map { $0.makeInstance(world) }
            try Self.makeStorageKeys(for: plan, world)
        }
        self.plan = plan
        self.world = world
        try Self.write(plan.apnsKey, "\(plan.directory)/apns.p8")
        try Self.write(plan.authority, "\(plan.directory)/ca.pem")
        for file in (instances + plan.others).compactMap(\.keyFile) {
            try Self.write(file.text, "\(plan.directory)/\(file.name)")
        }
        if let fcm = plan.fcm { try Self.write(fcm.serviceAccount, "\(plan.directory)/fcm.json") }
        try Self.write(plan.configuration(instances + plan.others), plan.configurationFile)
        guard mkdir(plan.stateDirectory, 0o700) == 0 || errno == EEXIST else { throw BenchError(.fileFault) }
    }

    /// A relay makes storage keys beside a file, and never beside a database that it may share.
    private static func makeStorageKeys(for plan: RelayPlan, _ world: World) throws(BenchError) {
        switch plan.store {
        case .sqlite, .sqliteWithoutSync, .memory: return
        case .postgres, .postgresWithoutSync: break
        }
        do {
            _ = try KeyFile.create("\(plan.directory)/storage.keys", world)
        } catch {
            throw BenchError(.fileFault)
        }
    }

    /// A server that this relay does not know yet.
    ///
    /// - Parameter place: of its protocol in the plan.
    func makeOrigin(_ place: Int = 0, at address: Address) -> any LoadOrigin {
        plan.loads[place].makeOrigin(
            host: "\(address.host):\(address.port)", publicKey: instances[place].publicKey,
            bundle: plan.bundle, world: world)
    }

    /// Signs such a server up and registers its devices, here and at the push services.
    ///
    /// - Throws: `.setUpRefused`, `.unreachable`.
    func signUp(
        _ place: Int = 0, apns: Int, fcm: Int = 0, at services: [ChaosService], through address: Address,
        _ eventLoop: any EventLoop
    ) async throws -> any LoadOrigin {
        var origin = makeOrigin(place, at: address)
        var books = try origin.signUp() + [origin.addDevices(apns, .apns)]
        if fcm > 0 { books.append(try origin.addDevices(fcm, .fcm)) }
        for book in books { try await book.setUp(at: address, eventLoop) }
        for device in origin.devices {
            for service in services { service.register(device, bundle: plan.bundle) }
        }
        return origin
    }

    /// Of the first protocol's instance.
    var publicKey: [UInt8] { instances[0].publicKey }

    /// Starts the program; does not wait until it is ready.
    ///
    /// - Throws: `.processFault`, `.fileFault`.
    package func launch() throws(BenchError) {
        var arguments = ["serve", "--config", plan.configurationFile, "--ends-with-input"]
        switch plan.store {
        case .sqlite, .postgres: break
        case .sqliteWithoutSync, .postgresWithoutSync: arguments.append("--danger-synchronous-normal")
        case .memory: arguments.append("--danger-volatile-store")
        }
        // Only the program of trials has options that lose pushes.
        let isInDanger = arguments.last?.hasPrefix("--danger") == true
        let executable = isInDanger ? try RelayPlan.ownExecutable() : plan.executable
        let command = plan.wrapper + [executable] + arguments
        var environment = plan.environment
        for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] where environment[name] == nil {
            environment[name] = ProcessInfo.processInfo.environment[name]
        }
        let started = try ChildProcess(
            command[0], Array(command.dropFirst()), environment: environment, log: plan.logFile,
            handing: plan.socket)
        child.withLock { $0 = started }
    }

    /// Waits until `run.json` says that this very process is ready.
    ///
    /// - Throws: `.relayNotReady` when it ends first, or after `patience`.
    package func ready(within patience: Duration) async throws -> Address {
        let until = world.instant() + patience
        while world.instant() < until {
            guard let process = child.withLock({ $0 }), !process.hasEnded else {
                throw BenchError(.relayNotReady)
            }
            if let address = Self.address(state: plan.stateDirectory), runs(address.pid, under: process) {
                return address
            }
            try await world.sleep(world.instant() + .milliseconds(4))
        }
        throw BenchError(.relayNotReady)
    }

    /// Whether the process has ended, or was never started.
    var hasEnded: Bool { child.withLock { $0?.hasEnded ?? true } }

    /// Kills the relay at once and waits until it is gone. Behind a wrapper, the program it started is
    /// killed.
    package func kill() async {
        guard let process = child.withLock({ $0 }) else { return }
        if let inner = wrapped(process) { Self.send(SIGKILL, to: inner) }
        process.signal(SIGKILL)
        _ = await process.wait()
    }

    /// Asks the relay to drain and end.
    ///
    /// - Returns: its exit status; `nil` when it had to be killed after `patience`.
    package func stop(within patience: Duration) async -> Int32? {
        guard let process = child.withLock({ $0 }) else { return nil }
        if let inner = wrapped(process) { Self.send(SIGTERM, to: inner) } else { process.signal(SIGTERM) }
        let until = world.instant() + patience
        while !process.hasEnded {
            guard world.instant() < until else {
                await kill()
                return nil
            }
            // Cut short only when the trial is cancelled; then the relay is killed at once.
            do { try await world.sleep(world.instant() + .milliseconds(10)) } catch { await kill() }
        }
        return await process.wait()
    }

    /// Reads where a server of this state directory listens; `nil` without a whole `run.json`.
    package static func address(state: String) -> Address? {
        guard let data = FileManager.default.contents(atPath: "\(state)/run.json"),
            // A file half written is no file yet.
            let file = try? JSONValue.parse(Array(data)), let pid = file["pid"]?.int64,
            let urls = file["urls"]?.object,
            let url = (urls["public"] ?? urls.members.first?.value)?.string, url.hasPrefix("http://"),
            let colon = url.lastIndex(of: ":"),
            let port = Int(url[url.index(after: colon)...].prefix { $0 != "/" })
        else { return nil }
        let host = String(url.dropFirst("http://".count).prefix { $0 != ":" })
        return Address(pid: Int32(truncatingIfNeeded: pid), host: host, port: port)
    }

    /// At which port a listener of this state directory's server is; `nil` without a whole `run.json`.
    static func port(of listener: String, state: String) -> Int? {
        guard let data = FileManager.default.contents(atPath: "\(state)/run.json"),
            // As above.
            let file = try? JSONValue.parse(Array(data)), let url = file["urls"]?[listener]?.string,
            let colon = url.lastIndex(of: ":")
        else { return nil }
        return Int(url[url.index(after: colon)...].prefix { $0 != "/" })
    }

    /// The instance's public keys that a running server's `run.json` tells; 32 bytes each.
    package static func publicKeys(state: String) -> [[UInt8]] {
        guard let data = FileManager.default.contents(atPath: "\(state)/run.json"),
            // As above.
            let file = try? JSONValue.parse(Array(data)), let instances = file["public_keys"]?.object
        else { return [] }
        return instances.members.flatMap { $0.value.array ?? [] }.compactMap { key in
            // A key that is no base64 is no key of ours.
            key.string.flatMap { try? Base64.decode($0) }
        }
    }

    /// The bundle ids that a running server's `run.json` tells.
    package static func bundles(state: String) -> [String] {
        guard let data = FileManager.default.contents(atPath: "\(state)/run.json"),
            // As above.
            let file = try? JSONValue.parse(Array(data)), let apps = file["apps"]?.object
        else { return [] }
        return apps.members.flatMap { $0.value.array ?? [] }.compactMap(\.string)
    }

    private func runs(_ pid: Int32, under process: ChildProcess) -> Bool {
        // A wrapper such as strace is its parent; one such as prlimit has become it.
        pid == process.pid || !plan.wrapper.isEmpty && Self.parent(of: pid) == process.pid
    }

    /// The relay behind a wrapper such as strace.
    private func wrapped(_ process: ChildProcess) -> Int32? {
        guard !plan.wrapper.isEmpty, let pid = Self.address(state: plan.stateDirectory)?.pid,
            Self.parent(of: pid) == process.pid
        else { return nil }
        return pid
    }

    private static func parent(of pid: Int32) -> Int32? {
        guard let data = FileManager.default.contents(atPath: "/proc/\(pid)/stat") else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return fields.count > 1 ? Int32(fields[1]) : nil
    }

    private static func send(_ signal: Int32, to pid: Int32) {
        if pid > 1 { Glibc.kill(pid, signal) }
    }

    private static func write(_ text: String, _ path: String) throws(BenchError) {
        let made = FileManager.default.createFile(
            atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        guard made else { throw BenchError(.fileFault) }
    }
}
