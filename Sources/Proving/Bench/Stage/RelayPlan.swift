import Foundation
import PushModel

/// What relays of a trial stand on.
package enum TrialStore: String, Sendable, CaseIterable {
    case sqlite
    /// A server that is made for the trial.
    case postgres
}

/// How a relay is set up for a trial: one app, and an instance of each protocol that it is asked in.
package struct RelayPlan: Sendable {
    package struct FCM: Sendable {
        package var url: String
        package var tokenURL: String
        /// The service account's JSON text.
        package var serviceAccount: String

        package init(url: String, tokenURL: String, serviceAccount: String) {
            self.url = url
            self.tokenURL = tokenURL
            self.serviceAccount = serviceAccount
        }
    }

    package enum Store: Sendable {
        case sqlite
        /// A store that does not sync: for showing that a proof fails without
        /// (`--danger-synchronous-normal`).
        case sqliteWithoutSync
        /// A database of a server, by its address.
        case postgres(url: String)
        /// The same, told not to wait for its disk: as above.
        case postgresWithoutSync(url: String)
        /// Gone with the process (`--danger-volatile-store`).
        case memory
    }

    /// The `sealbell` that is run: absolute path.
    package var executable: String
    /// A directory of the trial's own, which is there: configuration, keys, state and log go into it.
    package var directory: String
    package var apnsURL: String
    /// PEM of the authority of both push services.
    package var authority: String
    package var team = "A1B2C3D4E5"
    package var keyID = "F6G7H8I9J0"
    /// The `.p8` text.
    package var apnsKey: String
    package var bundle = RelayPlan.bundle
    package var fcm: FCM?
    /// The protocols of the load.
    var loads = [RelayPlan.load]
    /// Instances beside those of the load.
    var others: [StagedInstance] = []
    package var store = Store.sqlite
    /// Put before the program: `strace …`.
    package var wrapper: [String] = []
    /// Added to the program's environment: `LD_PRELOAD` and its like.
    package var environment: [String: String] = [:]

    /// With a listener for the operator.
    package var hasAdmin = false
    /// Of each origin; 0: no limit.
    package var pushesPerMinute = 0
    /// 0: any free one, at each start another.
    package var port = 0
    /// A listening socket that each start is handed, in place of a port of its own.
    package var socket: CInt?

    package init(executable: String, directory: String, apnsURL: String, authority: String, apnsKey: String) {
        self.executable = executable
        self.directory = directory
        self.apnsURL = apnsURL
        self.authority = authority
        self.apnsKey = apnsKey
    }

    /// Where the keys lie that the relays of one database share; `nil`: in the directory.
    var keysDirectory: String?
    var keys: String { keysDirectory ?? directory }

    private var storeURL: String {
        switch store {
        case .sqlite, .sqliteWithoutSync, .memory: "sqlite:relay.sqlite"
        case .postgres(let url), .postgresWithoutSync(let url): url
        }
    }

    package var stateDirectory: String { "\(directory)/state" }
    package var logFile: String { "\(directory)/relay.log" }
    var configurationFile: String { "\(directory)/sealbell.yaml" }
    /// The protocol of trials that ask in one alone.
    static let load = BenchProtocols.standard.loads[0]
    /// Devices of one server of such a trial: half of what the relay takes of a realm (docs/limits.md).
    static let devicesPerOrigin = 50_000
    static let bundle = "org.example.load"

    /// The configuration file's text (docs/configuration.md).
    func configuration(_ instances: [StagedInstance]) -> String {
        let fcmLines =
            fcm.map { fcm in
                """

                    fcm:
                      service_account: \(directory)/fcm.json
                      url: "\(fcm.url)"
                      token_url: "\(fcm.tokenURL)"
                      ca: \(directory)/ca.pem
                """
            } ?? ""
        let served = instances.filter(\.isServed).map(\.name).joined(separator: ", ")
        let instanceLines = instances.flatMap { instance in
            ["  \(instance.name):"] + instance.lines(self).map { "    \($0)" }
        }.joined(separator: "\n")
        let adminLine = hasAdmin ? "\n  admin: { bind: \"127.0.0.1:0\" }" : ""
        return """
            state: \(stateDirectory)
            store: { url: "\(storeURL)", keys: \(keys)/storage.keys }
            listeners:
              public: { bind: "127.0.0.1:\(port)", serves: [\(served)] }\(adminLine)
            log: { level: warning, format: json }
            limits: { pushes_per_minute: \(pushesPerMinute) }
            apps:
              load:
                apns:
                  team: \(team)
                  key_id: \(keyID)
                  key_file: \(directory)/apns.p8
                  bundles: [\(bundle)]
                  environment: production
                  url: "\(apnsURL)"
                  ca: \(directory)/ca.pem\(fcmLines)
            instances:
            \(instanceLines)

            """
    }
}

extension RelayPlan {
    /// The file of this very program.
    ///
    /// - Throws: `.processFault` where the system does not tell.
    package static func ownExecutable() throws(BenchError) -> String {
        do {
            return try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        } catch {
            throw BenchError(.processFault)
        }
    }
}
