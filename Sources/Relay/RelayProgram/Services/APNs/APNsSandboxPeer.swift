import NIOCore
import PushModel
import Simulators

/// Both of Apple's services in a sandbox.
struct APNsSandboxPeer: ServicePeer {
    let production: APNsSimulator
    let development: APNsSimulator
    private let context: SandboxContext

    init(for apps: [AppConfiguration], on context: SandboxContext) async throws {
        self.context = context
        var keys: [String: (key: APNsKey, bundles: Set<String>)] = [:]
        for apns in apps.compactMap(\.apns) {
            // Several apps may share one key.
            let file = Self.keyFile(apns, context.folder)
            let known = keys[file] ?? (APNsKey(team: apns.team, keyID: apns.keyID), [])
            keys[file] = (known.key, known.bundles.union(apns.bundles))
        }
        for (file, entry) in keys {
            try writeFile(file, Array(entry.key.privateKeyPEM.utf8), replacing: true)
        }
        let registrations = keys.values.map { $0.key.registration(bundles: $0.bundles) }
        var real = APNsSimulatorConfiguration(environment: .production, keys: registrations)
        real.knobs.learnsDevices = true
        let development = APNsSimulatorConfiguration(environment: .sandbox, keys: registrations)
        self.production = try APNsSimulator(
            real, authority: context.authority, world: context.world, eventLoopGroup: context.group)
        self.development = try APNsSimulator(
            development, authority: context.authority, world: context.world, eventLoopGroup: context.group)
        try await self.production.start()
        try await self.development.start()
    }

    // Never the file that the configuration names: anyone who rehearses with the configuration of a real
    // relay keeps the key that Apple gave.
    private static func keyFile(_ apns: APNsSettings, _ folder: String) -> String {
        joinPath(folder, "\(apns.team)-\(apns.keyID).p8")
    }

    var urls: [String: String] {
        SandboxContext.urls([
            ("sandbox-apns", production.port), ("sandbox-apns-development", development.port)
        ])
    }

    var simulators: [any SteeredSimulator] { [production, development] }

    func point(_ app: inout AppConfiguration) {
        guard var apns = app.apns else { return }
        apns.keyFile = Self.keyFile(apns, context.folder)
        apns.url = HTTPSBase(loopback: production.port)
        apns.sandboxURL = HTTPSBase(loopback: development.port)
        apns.caFile = context.authorityFile
        app.apns = apns
    }

    func stop() async {
        await production.stop()
        await development.stop()
    }
}

extension Sandbox {
    var production: APNsSimulator { standing(APNsSandboxPeer.self).production }
    var development: APNsSimulator { standing(APNsSandboxPeer.self).development }
}
