import NextcloudPush
import PushModel

/// What the keys of a Nextcloud instance say.
struct NextcloudSettings: Sendable, Hashable {
    /// Which app the client word of a User-Agent means, in small letters.
    var clients: [String: ConfiguredName]
    /// Whether `/devices` and `/notifications` without a prefix are this instance's.
    var hasBarePath: Bool
    /// The keys of which a Nextcloud server must show one (`SubscriptionKeysFile`); `nil`: anyone may push.
    var subscriptionKeysFile: String?
    var missingDevice: NextcloudPolicy.MissingDelete
    var newKey: NextcloudPolicy.NewKey
    /// Servers whose users must prove their first registration too, and whose users alone register: host,
    /// port and path as cloud ids have them; empty: anybody registers.
    var proof: Set<String>
    /// Hosts that are asked for identity proofs at whatever address they have.
    var privateHosts: Set<HTTPSBase>
    /// PEM file of an authority that is trusted for `privateHosts`, beside the system's.
    var caFile: String?
}

extension NextcloudSettings: InstanceSettings {
    static let paths = ["/devices", "/notifications"]
    /// Those that end in a slash belong to nobody else.
    func paths(of instance: ConfiguredName) -> [String] {
        ["/\(instance.text)/"] + (hasBarePath ? Self.paths : [])
    }

    var peers: [PeerAddress] {
        privateHosts.map { PeerAddress(host: $0.host, port: $0.port, caFile: caFile) }
            .sorted { ($0.host, $0.port) < ($1.host, $1.port) }
    }
}

extension InstanceConfiguration {
    var nextcloud: NextcloudSettings? { settings as? NextcloudSettings }
}

extension FileContent {
    static let subscriptionKeys = SubscriptionKeysFile.content("subscription keys") { [.secrets($0.count)] }
}

extension InstanceReader {
    /// Reads the keys of a Nextcloud instance.
    func nextcloud() -> NextcloudSettings? {
        checkBundles()
        checkSingleBundles()
        let privateHosts = cursor.parsedList(
            "private_hosts", { HTTPSBase("https://\($0)") },
            "A host such as cloud.example.org or cloud.example.org:8443, without https://.")
        if privateHosts.isEmpty, cursor.node["ca"] != nil {
            cursor.fault(.conflict, "ca", "ca is for private_hosts alone; others need a public certificate.")
        }
        let newKey: NextcloudPolicy.NewKey = cursor.choice("new_key", default: .byProof)
        if newKey == .byToken, cursor.node["proof"] != nil {
            cursor.fault(
                .conflict, "new_key", "Where proof is set, another key is proved as the first one is.")
        }
        return NextcloudSettings(
            clients: clients(), hasBarePath: cursor.flag("bare_path", default: false),
            subscriptionKeysFile: cursor.file("subscription_keys", .subscriptionKeys),
            missingDevice: cursor.choice("missing_device", default: .forbidden), newKey: newKey,
            proof: proof(), privateHosts: Set(privateHosts),
            caFile: cursor.file("ca", .authority))
    }

    /// A registration names no bundle id, so that its app must have one alone.
    private func checkSingleBundles() {
        for app in apps where bundles(of: app).count > 1 {
            cursor.fault(
                .conflict, "apps",
                "The app \(app) has several bundle ids, and a registration names none: make an app of each.")
        }
    }

    private func clients() -> [String: ConfiguredName] {
        guard let entries = cursor.cursor("clients", keys: nil) else { return [:] }
        var clients: [String: ConfiguredName] = [:]
        for entry in entries.named() {
            guard let text = entries.text(entry.name.text) else { continue }
            clients[entry.name.text] = ownApp(named: text)
        }
        return clients
    }

    private func proof() -> Set<String> {
        let servers = cursor.parsedList(
            "proof",
            { text -> String? in
                guard let id = CloudID(Secret("user@\(text)".utf8)), !id.isPlain, !text.contains("://")
                else { return nil }
                return id.server
            }, "A server such as cloud.example.org or example.org/cloud, without https://.")
        return Set(servers)
    }
}
