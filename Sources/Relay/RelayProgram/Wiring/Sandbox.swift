import NIOCore
import PushModel
import Simulators

/// The push services that stand beside `serve --sandbox`: simulators that judge as the real ones do, with a
/// CA and credentials made on the spot (README.md).
struct Sandbox: Sendable {
    let production: APNsSimulator
    let development: APNsSimulator
    let fcm: FCMSimulator
    /// Of the protocols that have one.
    let peers: [any SandboxPeer]
    let control: SimulatorControl
    let authority: CertificateAuthority
    let authorityFile: String

    /// Starts the simulators and writes what the configuration's apps need into `sandbox/` of the state.
    ///
    /// - Returns: the sandbox, and the configuration with its apps pointed at it.
    static func start(
        _ configuration: RelayConfiguration, group: any EventLoopGroup, world: World
    ) async throws(CommandFailure) -> (Sandbox, RelayConfiguration) {
        do {
            return try await open(configuration, group, world)
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as SimulatorError {
            throw CommandFailure(.unavailable, "sandbox: \(error.sentence)")
        } catch {
            throw CommandFailure(.software, "The sandbox could not be made.")
        }
    }

    private static func open(
        _ configuration: RelayConfiguration, _ group: any EventLoopGroup, _ world: World
    ) async throws -> (Sandbox, RelayConfiguration) {
        let folder = joinPath(configuration.state, "sandbox")
        try makeFolder(folder)
        let authority = try CertificateAuthority()
        let file = joinPath(folder, "ca.pem")
        try writeFile(file, Array(authority.certificatePEM.utf8), replacing: true)
        var keys: [String: (key: APNsKey, bundles: Set<String>)] = [:]
        var accounts: [(file: String, account: Simulators.ServiceAccount)] = []
        for app in configuration.apps {
            if let apns = app.apns {
                // Several apps may share one key.
                let file = keyFile(apns, folder)
                let known = keys[file] ?? (APNsKey(team: apns.team, keyID: apns.keyID), [])
                keys[file] = (known.key, known.bundles.union(apns.bundles))
            }
            if app.fcm != nil {
                let account = try Simulators.ServiceAccount(project: app.name.text)
                accounts.append((accountFile(app, folder), account))
            }
        }
        for (file, entry) in keys {
            try writeFile(file, Array(entry.key.privateKeyPEM.utf8), replacing: true)
        }
        let registrations = keys.values.map { $0.key.registration(bundles: $0.bundles) }
        let simulators = try services(registrations, accounts.map(\.account), authority, group, world)
        let (production, development, fcm) = simulators
        _ = (try await production.start(), try await development.start(), try await fcm.start())
        for (file, account) in accounts {
            let text = account.json(tokenURI: fcm.tokenURI ?? "")
            try writeFile(file, Array(text.utf8), replacing: true)
        }
        let ground = SandboxGround(authority: authority, authorityFile: file, group: group, world: world)
        var peers: [any SandboxPeer] = []
        for spoken in configuration.protocols.all {
            if let peer = try await spoken.sandboxPeer(on: ground) { peers.append(peer) }
        }
        let control = SimulatorControl(apns: [production, development], fcm: fcm, eventLoopGroup: group)
        try await control.start()
        for instance in configuration.instances { try instance.settings.makeSandboxKeys() }
        let sandbox = Sandbox(
            production: production, development: development, fcm: fcm, peers: peers, control: control,
            authority: authority, authorityFile: file)
        return (sandbox, sandbox.point(configuration))
    }

    // Never the files that the configuration names: whoever rehearses with the configuration of a real relay
    // keeps the keys that Apple and Google gave.
    private static func keyFile(_ apns: APNsAppConfiguration, _ folder: String) -> String {
        joinPath(folder, "\(apns.team)-\(apns.keyID).p8")
    }

    private static func accountFile(_ app: AppConfiguration, _ folder: String) -> String {
        joinPath(folder, "\(app.name)-fcm.json")
    }

    /// The configuration with its apps pointed at the simulators, and at the credentials that fit them.
    func point(_ configuration: RelayConfiguration) -> RelayConfiguration {
        var pointed = configuration
        let sandbox = folder(of: authorityFile)
        for index in pointed.apps.indices {
            let app = pointed.apps[index]
            if let apns = app.apns { pointed.apps[index].apns?.keyFile = Self.keyFile(apns, sandbox) }
            pointed.apps[index].fcm?.serviceAccountFile = Self.accountFile(app, sandbox)
            pointed.apps[index].fcm?.tokenURL = nil
            pointed.apps[index].apns?.url = Self.base(production.port)
            pointed.apps[index].apns?.sandboxURL = Self.base(development.port)
            pointed.apps[index].apns?.caFile = authorityFile
            pointed.apps[index].fcm?.url = Self.base(fcm.port)
            pointed.apps[index].fcm?.caFile = authorityFile
        }
        for index in pointed.instances.indices {
            for peer in peers { peer.point(&pointed.instances[index]) }
        }
        return pointed
    }

    /// The peer of that kind.
    func peer<Peer: SandboxPeer>(_: Peer.Type) -> Peer? {
        for peer in peers { if let found = peer as? Peer { return found } }
        return nil
    }

    private static func base(_ port: Int?) -> HTTPSBase? {
        port.map { HTTPSBase(host: "127.0.0.1", port: $0) }
    }

    private static func services(
        _ keys: [APNsKeyRegistration], _ accounts: [Simulators.ServiceAccount],
        _ authority: CertificateAuthority, _ group: any EventLoopGroup, _ world: World
    ) throws(SimulatorError) -> (APNsSimulator, APNsSimulator, FCMSimulator) {
        var real = APNsSimulatorConfiguration(environment: .production, keys: keys)
        real.knobs.learnsDevices = true
        let development = APNsSimulatorConfiguration(environment: .sandbox, keys: keys)
        var firebase = FCMSimulatorConfiguration(accounts: accounts.map(\.registration))
        firebase.knobs.learnsDevices = true
        return (
            try APNsSimulator(real, authority: authority, world: world, eventLoopGroup: group),
            try APNsSimulator(development, authority: authority, world: world, eventLoopGroup: group),
            try FCMSimulator(firebase, authority: authority, world: world, eventLoopGroup: group)
        )
    }

    /// Writes a file of keys where there is none yet.
    static func make(
        _ file: String, _ limitBytes: Int, _ text: () -> Secret
    ) throws(CommandFailure) {
        do throws(FileFault) {
            do throws(FileFault) {
                _ = try readSecret(file, limitBytes: limitBytes)
            } catch {
                guard error == .missing else { throw error }
                try text().reveal { (bytes) throws(FileFault) in
                    try writeFile(file, bytes, replacing: true)
                }
            }
        } catch {
            throw CommandFailure(.configuration, "\(file): \(error.sentence)")
        }
    }

    func stop() async {
        await control.stop()
        for peer in peers { await peer.stop() }
        await production.stop()
        await development.stop()
        await fcm.stop()
    }
}
