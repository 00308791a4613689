import NIOCore
import PushModel
import Simulators

/// FCM and its token service in a sandbox.
struct FCMSandboxPeer: ServicePeer {
    let simulator: FCMSimulator
    private let context: SandboxContext

    init(for apps: [AppConfiguration], on context: SandboxContext) async throws {
        self.context = context
        var accounts: [(file: String, account: ServiceAccount)] = []
        for app in apps where app.fcm != nil {
            let account = try ServiceAccount(project: app.name.text)
            accounts.append((Self.accountFile(app, context.folder), account))
        }
        var firebase = FCMSimulatorConfiguration(accounts: accounts.map(\.account.registration))
        firebase.knobs.learnsDevices = true
        simulator = try FCMSimulator(
            firebase, authority: context.authority, world: context.world, eventLoopGroup: context.group)
        try await simulator.start()
        for (file, account) in accounts {
            let text = account.json(tokenURI: simulator.tokenURI ?? "")
            try writeFile(file, Array(text.utf8), replacing: true)
        }
    }

    // Never the file that the configuration names, as with every credential.
    private static func accountFile(_ app: AppConfiguration, _ folder: String) -> String {
        joinPath(folder, "\(app.name)-fcm.json")
    }

    var urls: [String: String] { SandboxContext.urls([("sandbox-fcm", simulator.port)]) }
    var simulators: [any SteeredSimulator] { [simulator] }

    func point(_ app: inout AppConfiguration) {
        guard var fcm = app.fcm else { return }
        fcm.serviceAccountFile = Self.accountFile(app, context.folder)
        fcm.tokenURL = nil
        fcm.url = HTTPSBase(loopback: simulator.port)
        fcm.caFile = context.authorityFile
        app.fcm = fcm
    }

    func stop() async { await simulator.stop() }
}

extension Sandbox {
    var fcm: FCMSimulator { standing(FCMSandboxPeer.self).simulator }
}
