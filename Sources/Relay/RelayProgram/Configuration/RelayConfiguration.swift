import PushModel

/// Everything an operator decides, read once and already valid: every name refers to something, every
/// number is inside its bounds, every path is absolute (docs/configuration.md).
///
/// It holds no secret: keys and credentials are paths of files, which the wiring reads.
struct RelayConfiguration: Sendable, Hashable {
    /// The file it came from; `nil` for the built-in sandbox.
    var file: String?
    /// True with `--sandbox`: simulators stand beside the relay, and sign-up is open unless the file says
    /// otherwise.
    var isSandbox: Bool
    /// The state directory, absolute.
    var state: String
    var store: StoreConfiguration
    /// Ordered by name.
    var listeners: [ListenerConfiguration]
    var log: LogConfiguration
    /// Ordered by name.
    var apps: [AppConfiguration]
    /// Ordered by name.
    var instances: [InstanceConfiguration]
    /// Through which every push service and every other outgoing request is reached.
    var proxy: OutgoingProxy?
    var limits: LimitsConfiguration
    var alerts: AlertsConfiguration
    /// Whether the store keeps, for a week, what became of the pushes of each registration.
    var keepsHistory = true
    /// What is allowed and still deserves a word at start.
    var warnings: [ConfigurationWarning]
    /// Every file that the configuration names, in the file's order.
    var files: [ConfiguredFile]

    func app(_ name: ConfiguredName) -> AppConfiguration? { apps.first { $0.name == name } }
    func instance(_ name: ConfiguredName) -> InstanceConfiguration? { instances.first { $0.name == name } }
    func listener(_ name: ConfiguredName) -> ListenerConfiguration? { listeners.first { $0.name == name } }

    /// App ids of each app, by its name: what devices name it by.
    var bundles: [String: [String]] {
        Dictionary(apps.map { ($0.name.text, $0.services.flatMap { $0.appIDs }) }, uniquingKeysWith: { $1 })
    }

    /// What the admin listener asks for, where it asks for a token.
    var adminTokenFile: String? {
        for listener in listeners { if case .admin(let file?) = listener.purpose { return file } }
        return nil
    }
}

/// Where records and owed pushes live, and the file of the keys that seal them.
struct StoreConfiguration: Sendable, Hashable {
    enum Engine: Sendable, Hashable {
        /// Absolute path of the database file.
        case sqlite(path: String)
        /// A database that several relays may share. `url` has no password; its file is absolute.
        case postgres(url: String, passwordFile: String?)
        /// Gone when the process ends; for the sandbox alone.
        case memory
    }

    var engine: Engine
    /// Absolute path of `storage.keys` (docs/configuration.md).
    var keysFile: String
}

/// One listener.
struct ListenerConfiguration: Sendable, Hashable {
    enum Purpose: Sendable, Hashable {
        /// Instances whose protocol is spoken here, at least one.
        case instances([ConfiguredName])
        /// Metrics, health, the operator's pages and calls.
        case admin(tokenFile: String?)
    }

    struct TLS: Sendable, Hashable {
        /// PEM chain, leaf first.
        var certificateFile: String
        /// PEM private key.
        var keyFile: String
    }

    /// The name that means an origin's listener.
    static let originName = "origin"

    var name: ConfiguredName
    var bind: BindAddress
    var purpose: Purpose
    /// Peers whose `X-Forwarded-For` is believed.
    var trustedProxies: [AddressBlock]
    var tls: TLS?

    var isAdmin: Bool {
        if case .admin = purpose { return true }
        return false
    }

    /// Clients of an origin ask for future events, and wait.
    var hasWaitingClients: Bool { name.text == Self.originName }

    /// Instances served; empty on the admin listener.
    var serves: [ConfiguredName] {
        if case .instances(let names) = purpose { return names }
        return []
    }
}

struct LogConfiguration: Sendable, Hashable {
    enum Format: String, Sendable, Hashable, CaseIterable {
        /// Text on a terminal, else JSON lines.
        case auto
        case text, json
    }

    var level: LogLevel
    var format: Format
}

struct LimitsConfiguration: Sendable, Hashable {
    /// Owed pushes.
    var outboxRows: Int = 2_000_000
    /// Bytes of owed pushes.
    var outboxBytes: Int64 = 4 << 30
    /// Per origin; `nil`: none.
    var pushesPerMinute: Int? = 60_000
    /// Open connections of one listener.
    var connections: Int = 20_000
}

/// Where an operator gets alerts.
struct AlertsConfiguration: Sendable, Hashable {
    struct Webhook: Sendable, Hashable {
        var url: HTTPSURL
        /// Its bytes sign each call (HMAC-SHA256).
        var secretFile: String
        /// PEM of an authority of the operator's own; `nil`: those that this machine trusts, alone.
        var authorityFile: String?
    }

    struct Mail: Sendable, Hashable {
        /// Program (absolute path) and arguments; the message comes on its standard input.
        var command: [String]
        /// What the message's `To` field says.
        var to: String
    }

    /// Longer than harmless delays: a `Retry-After` is honoured for 15 minutes, and a pace puts off for 10.
    static let overdueMinutes = 30

    var log: Bool = true
    var gauge: Bool = true
    /// How long a push may be owed before an operator is told; `nil`: for ever.
    var overdueAfter: Duration? = .seconds(60 * overdueMinutes)
    var webhook: Webhook?
    var mail: Mail?
}

/// The key `history`.
enum HistorySwitch: String, Sendable, Hashable, CaseIterable { case on, off }
