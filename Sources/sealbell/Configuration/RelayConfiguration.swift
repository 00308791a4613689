import MarmotPush
import NostrIngress
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
    /// What is allowed and still deserves a word at start.
    var warnings: [ConfigurationWarning]
    /// Every file that the configuration names, in the file's order.
    var files: [ConfiguredFile]

    func app(_ name: ConfiguredName) -> AppConfiguration? { apps.first { $0.name == name } }
    func instance(_ name: ConfiguredName) -> InstanceConfiguration? { instances.first { $0.name == name } }
    func listener(_ name: ConfiguredName) -> ListenerConfiguration? { listeners.first { $0.name == name } }

    /// What the admin door asks for, where it asks for a token.
    var adminTokenFile: String? {
        for listener in listeners { if case .admin(let file?) = listener.purpose { return file } }
        return nil
    }
}

/// A file that the configuration names, and where it does.
struct ConfiguredFile: Sendable, Hashable {
    /// What the file must hold.
    enum Content: Sendable, Hashable {
        case storageKeys, databasePassword, apnsKey, serviceAccount, bouncerKeys, nostrKey, certificate,
            privateKey, authority,
            token,
            webhookSecret
    }

    var content: Content
    /// Absolute.
    var file: String
    /// `apps.acme-chat.apns.key_file`.
    var path: String
    var source: ConfigurationFault.Source
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

/// One door.
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

    /// Instances served; empty on the admin door.
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

/// An app as its publisher registered it with Apple and Google.
struct AppConfiguration: Sendable, Hashable {
    var name: ConfiguredName
    var apns: APNsAppConfiguration?
    var fcm: FCMAppConfiguration?
    /// What a device shows when it cannot open what arrived.
    var fallback: FallbackAlert
}

struct APNsAppConfiguration: Sendable, Hashable {
    enum Environment: String, Sendable, Hashable, CaseIterable {
        case production, sandbox
        /// Production first, and sandbox once for an address never accepted (docs/configuration.md).
        case learn
    }

    /// Ten capital letters and digits.
    var team: String
    /// Ten capital letters and digits.
    var keyID: String
    /// The `.p8` file.
    var keyFile: String
    /// At least one; each belongs to this app alone within an instance.
    var bundles: [String]
    var environment: Environment
    /// Whether the app takes `voip` pushes.
    var voip: Bool
    /// Instead of Apple's own base URLs.
    var url: HTTPSBase?
    /// Instead of Apple's sandbox; follows `url` when that alone is set.
    var sandboxURL: HTTPSBase?
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
}

struct FCMAppConfiguration: Sendable, Hashable {
    enum Address: String, Sendable, Hashable, CaseIterable {
        /// By the form of each address.
        case auto
        /// Registration tokens.
        case token
        /// Firebase installation ids.
        case fid
    }

    /// The service account's JSON file.
    var serviceAccountFile: String
    var address: Address
    /// Instead of Google's base URL.
    var url: HTTPSBase?
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
    /// Instead of the token endpoint that the service account names.
    var tokenURL: HTTPSURL?
}

/// Fixed texts shown when a device cannot open a push: literal, or by keys into the app's own translations.
struct FallbackAlert: Sendable, Hashable {
    var title: String?
    var body: String?
    var titleLocKey: String?
    var locKey: String?
    var sound: String?
    var category: String?

    /// "New notification", as the deployed Zulip bouncer puts it where an origin gives no `aps`.
    static let standard = FallbackAlert(title: "New notification")
}

/// A named protocol endpoint.
struct InstanceConfiguration: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case zulip(ZulipInstanceConfiguration)
        case marmot(MarmotInstanceConfiguration)

        /// Whether origins and devices come to a listener of ours.
        var isServedByListeners: Bool {
            switch self {
            case .zulip: true
            case .marmot: false
            }
        }
    }

    /// Also the record space of the instance, so a renamed instance has lost its registrations.
    var name: ConfiguredName
    var kind: Kind
    /// Apps served, at least one, in the file's order.
    var apps: [ConfiguredName]

    var zulip: ZulipInstanceConfiguration? {
        if case .zulip(let zulip) = kind { return zulip }
        return nil
    }

    var marmot: MarmotInstanceConfiguration? {
        if case .marmot(let marmot) = kind { return marmot }
        return nil
    }

    /// Which app an FCM push belongs to.
    var fcmApp: ConfiguredName? {
        switch kind {
        case .zulip(let zulip): zulip.fcmApp
        case .marmot: apps.first
        }
    }
}

struct ZulipInstanceConfiguration: Sendable, Hashable {
    /// Which app an FCM registration belongs to, for it names none; `nil` when no app has FCM.
    var fcmApp: ConfiguredName?
    /// The bouncer's key pairs (`BouncerKeysFile`).
    var keysFile: String
    var signUp: SignUpPolicy
    /// Whether the domain of a contact mail must have a mail exchanger.
    var mxLookup: Bool
}

/// A notification server on Nostr relays. It serves one app, since a trigger names none.
struct MarmotInstanceConfiguration: Sendable, Hashable {
    enum Mode: String, Sendable, Hashable, CaseIterable {
        case silent
        case genericAlert = "generic_alert"
        case mutableAlert = "mutable_alert"
    }

    /// The app's bundle id; `nil` for an app without APNs.
    var bundle: String?
    /// The server's private key (`NostrKeyFile`).
    var keyFile: String
    /// Keys of before, during a rotation.
    var oldKeyFiles: [String]
    /// `wss` addresses, at least one but in the sandbox; plain `ws` on loopback and for onion services alone.
    var relays: [String]
    var formats: Set<TokenFormat>
    var mode: Mode
    var backlog: NostrBacklog
    /// Seconds between two wakes of a device; 0: none.
    var wakePause: Int
    /// Seconds for which a `push-v1` content is held.
    var contentMemory: Int
    /// Percent of one core for what strangers send.
    var cpuPercent: Int
    /// Triggers of one author in a minute; 0: no limit.
    var authorPerMinute: Int
    /// Whether relays are tested with triggers of our own.
    var selfTest: Bool
    /// Through which the relays are reached, by name.
    var proxy: SOCKSAddress?
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
}

/// Who may sign up (docs/configuration.md).
enum SignUpPolicy: Sendable, Hashable {
    case open
    /// Host names in lower case, without port.
    case allowList(Set<String>)
    /// Hosts invited by `sealbell origins invite`, once each within 7 days.
    case invite
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

/// Where an operator hears what they must know.
struct AlertsConfiguration: Sendable, Hashable {
    struct Webhook: Sendable, Hashable {
        var url: HTTPSURL
        /// Its bytes sign each call (HMAC-SHA256).
        var secretFile: String
    }

    struct Mail: Sendable, Hashable {
        /// Program (absolute path) and arguments; the message comes on its standard input.
        var command: [String]
        /// What the message's `To` field says.
        var to: String
    }

    /// Longer than what is nobody's fault takes: a `Retry-After` is honoured for 15 minutes, and a pace puts
    /// off for 10.
    static let overdueMinutes = 30

    var log: Bool = true
    var gauge: Bool = true
    /// How long a push may be owed before an operator is told; `nil`: for ever.
    var overdueAfter: Duration? = .seconds(60 * overdueMinutes)
    var webhook: Webhook?
    var mail: Mail?
}

/// Something allowed that an operator would want to hear about.
struct ConfigurationWarning: Sendable, Hashable {
    enum Code: String, Sendable, Hashable, CaseIterable {
        case storageKeysInsideState, noAdminListener, unknownEnvironment, plainTextOffLoopback, appUnused
        case openSignUp
    }

    var code: Code
    /// Configuration path, or the name of an environment variable.
    var path: String
    var sentence: String
}
