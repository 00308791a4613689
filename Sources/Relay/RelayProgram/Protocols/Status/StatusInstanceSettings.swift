import PushModel
import Secp256k1Keys
import StatusPush
import WakuIngress

/// What the keys of a Status instance say.
struct StatusInstanceSettings: Sendable, Hashable {
    /// A server of the operator's own.
    struct Peer: Sendable, Hashable {
        var url: PeerURL
        /// PEM file of the authority to trust beside the system's.
        var caFile: String?
    }

    /// Without the topics that are served, which are the apps'.
    var policy: StatusPolicy
    /// The server's private key (`StatusKeyFile`).
    var keyFile: String
    /// The Waku node; `nil` in a sandbox alone, which has its own.
    var waku: Peer?
    /// The gateway that has the credentials; `nil`: the relay's own lanes deliver.
    var gorush: Peer?
    var allowances: StatusAllowances
}

extension StatusInstanceSettings: InstanceSettings {
    static let paths: [String] = []
    static let unservedSentence = "Status is reached through a Waku node; no listener serves it."

    func app(for service: PushService) -> ConfiguredName? { service == .fcm ? policy.fcmApp : nil }

    /// Kept connections to the node and to the gateway.
    var descriptors: Int { StatusHostLimits.connections * peers.count }

    var peers: [PeerAddress] {
        [waku, gorush].compactMap(\.self).map { peer in
            PeerAddress(
                host: peer.url.host, port: peer.url.port, caFile: peer.caFile, isPlain: peer.url.isPlain)
        }
    }

    func makeSandboxKeys() throws(CommandFailure) {
        try StatusKeyFile.make(once: keyFile, .generate(.live))
    }
}

extension InstanceConfiguration {
    var status: StatusInstanceSettings? { settings as? StatusInstanceSettings }
}

extension InstanceReader {
    /// Reads the keys of a Status instance.
    func status() -> StatusInstanceSettings? {
        let key = cursor.file(
            "key_file", .statusKey,
            orElse: "Name the server's key file; sealbell keys new status makes one.")
        checkBundles()
        let minute = { (key: String, standard: Int) in
            cursor.number(key, in: 1...Self.mostPerMinute, default: standard)
        }
        let (fcmApp, bundle, waku) = (fcmApp(), bundle(), waku())
        let gorush = peer("gorush", "http://127.0.0.1:8088")
        let settings = StatusInstanceSettings(
            policy: StatusPolicy(
                compatibility: cursor.choice("compatibility", default: .standard),
                delivery: gorush == nil ? .lanes : .gateway, fcmApp: fcmApp, defaultBundle: bundle),
            keyFile: key ?? "", waku: waku, gorush: gorush,
            allowances: StatusAllowances(
                registrations: minute(
                    "registrations_per_minute", StatusAllowances.registrationsPerMinute),
                queries: minute("queries_per_minute", StatusAllowances.queriesPerMinute),
                requests: minute("requests_per_minute", StatusAllowances.requestsPerMinute)))
        return key == nil ? nil : settings
    }

    /// More is beyond what one relay computes.
    private static let mostPerMinute = 10_000_000

    private func waku() -> StatusInstanceSettings.Peer? {
        let example = "http://127.0.0.1:8645"
        // The sandbox has one of its own.
        if cursor.node["waku"] == nil, !context.isSandbox {
            cursor.missing("waku", "Say where the Waku node is: waku: { url: \"\(example)\" }.")
        }
        guard let peer = peer("waku", example) else { return nil }
        if WakuNode(peer.url.text) == nil {
            cursor.cursor("waku", keys: nil)?.fault(.badValue, "url", "The node's address has no path.")
        }
        return peer
    }

    private func peer(_ key: String, _ example: String) -> StatusInstanceSettings.Peer? {
        guard let cursor = cursor.cursor(key, keys: ["url", "ca"]) else { return nil }
        if cursor.node["url"] == nil { cursor.missing("url", "Say where it is: url: \"\(example)\".") }
        let url = cursor.parsed("url", PeerURL.init, PeerURL.sentence + "\(example).")
        let ca = cursor.file("ca", .authority)
        if let url, url.isPlain, ca != nil {
            cursor.fault(.conflict, "ca", "An http:// address has no certificate; leave ca out.")
        }
        return url.map { StatusInstanceSettings.Peer(url: $0, caFile: ca) }
    }

    /// The topic of registrations without one: a bundle id of the instance's apps, where it has any.
    private func bundle() -> String? {
        guard let text = cursor.text("bundle") else { return nil }
        guard cursor.node["apps"] != nil || cursor.node["gorush"] == nil else {
            if isBundle(text.text) { return text.text }
            cursor.fault(
                .badValue, "bundle",
                "1 to 155 letters, digits, dots and hyphens, without a suffix such as .voip.")
            return nil
        }
        guard apps.contains(where: { bundles(of: $0).contains(text.text) }) else {
            cursor.fault(.conflict, "bundle", "This is no bundle id of the instance's apps.")
            return nil
        }
        return text.text
    }
}
