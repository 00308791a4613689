import MarmotPush
import NostrIngress
import PushModel
import Secp256k1Keys
import WebSocket

/// A notification server on Nostr relays. It serves one app, since a trigger names none.
struct MarmotSettings: Sendable, Hashable {
    enum Mode: String, Sendable, Hashable, CaseIterable {
        case silent
        case genericAlert = "generic_alert"
        case mutableAlert = "mutable_alert"
    }

    /// The one that the instance serves.
    var app: ConfiguredName?
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

extension MarmotSettings: InstanceSettings {
    static let paths: [String] = []
    static let unservedSentence = "Marmot is reached through Nostr relays; no listener serves it."

    func app(for service: PushService) -> ConfiguredName? { app }
    /// To each relay the standing connection, and one that publishes or takes its place.
    var descriptors: Int { 2 * relays.count }

    /// The inbox relays, or the SOCKS proxy before them; an onion service is out of our own reach.
    var peers: [PeerAddress] {
        if let proxy { return [PeerAddress(host: proxy.host, port: proxy.port, isPlain: true)] }
        // The configuration holds none that is malformed.
        return relays.compactMap { try? WebSocketAddress($0) }.map { address in
            PeerAddress(
                host: address.host, port: address.port, caFile: address.isSecure ? caFile : nil,
                isPlain: !address.isSecure)
        }
    }

    func makeSandboxKeys() throws(CommandFailure) {
        try NostrKeyFile.make(once: keyFile, .generate(.live))
    }
}

extension InstanceConfiguration {
    var marmot: MarmotSettings? { settings as? MarmotSettings }
}

/// The private key of a notification server.
enum NostrKeyFile: Secp256k1KeyFile {
    typealias Fault = Secp256k1KeyFault<Self>
    static let command = "nostr"
    static func publicText(_ pair: Secp256k1KeyPair) -> String { pair.publicKey.hex }
}

extension FileContent {
    static let nostrKey = NostrKeyFile.content("a Nostr key")
}

extension InstanceReader {
    /// Reads the keys of a Marmot instance.
    func marmot() -> MarmotSettings? {
        if apps.count > 1 {
            cursor.fault(
                .conflict, "apps",
                "A trigger names no app, so an instance serves one; give each app an instance and a key.")
        }
        let key = cursor.file(
            "key_file", .nostrKey, orElse: "Name the server's key file; sealbell keys new nostr makes one.")
        let old = oldKeys()
        let bundle = apps.first.flatMap { self.bundle(of: $0) }
        let proxy = cursor.parsed(
            "proxy", SOCKSAddress.init, "An address such as socks5://127.0.0.1:9050, without a password.")
        let relays = relays(hasProxy: cursor.node["proxy"] != nil)
        let settings = MarmotSettings(
            app: apps.first, bundle: bundle, keyFile: key ?? "", oldKeyFiles: old, relays: relays,
            formats: formats(), mode: cursor.choice("mode", default: MarmotSettings.Mode.silent),
            backlog: cursor.choice("backlog", default: NostrBacklog.live),
            wakePause: cursor.number(
                "wake_pause", in: 0...Self.longestSpan,
                default: Int(MarmotLimits.devicePause.components.seconds)),
            contentMemory: cursor.number(
                "content_memory", in: 0...Self.longestSpan,
                default: Int(MarmotLimits.contentReplaySpan.components.seconds)),
            cpuPercent: cursor.number("cpu_percent", in: 1...100, default: MarmotLimits.cpuPercent),
            authorPerMinute: cursor.number(
                "author_per_minute", in: 0...60_000, default: MarmotBudgets().sender.perMinute),
            selfTest: cursor.flag("self_test", default: true), proxy: proxy,
            caFile: cursor.file("ca", .authority))
        return key == nil ? nil : settings
    }

    private func oldKeys() -> [String] {
        let texts = cursor.list("old_key_files") ?? []
        if texts.count > MarmotSettings.oldKeyLimit {
            cursor.fault(
                .outOfBounds, "old_key_files", "At most \(MarmotSettings.oldKeyLimit).")
        }
        return texts.map { text in
            let file = context.absolute(text.text, from: text.source)
            context.files.append(
                ConfiguredFile(content: .nostrKey, file: file, path: text.path.text, source: text.source))
            return file
        }
    }

    /// The bundle id of every push: the one named, else the app's only one.
    private func bundle(of app: ConfiguredName) -> String? {
        let bundles = bundles(of: app)
        guard let text = cursor.text("bundle") else {
            if bundles.count > 1 {
                cursor.missing(
                    "bundle", "The app has several bundle ids, and a trigger names none: say which.")
            }
            return bundles.first
        }
        if !bundles.contains(text.text) {
            cursor.fault(.conflict, "bundle", "This is no bundle id of the instance's app.")
        }
        return text.text
    }

    private func relays(hasProxy: Bool) -> [String] {
        // The sandbox has a relay of its own.
        guard cursor.node["relays"] != nil || !context.isSandbox else { return [] }
        guard cursor.node["relays"] != nil else {
            cursor.missing("relays", "Name the inbox relays: relays: [\"wss://relay.example.org\"].")
            return []
        }
        guard let texts = cursor.list("relays") else { return [] }
        if !(1...NostrLimits.relays).contains(texts.count) {
            cursor.fault(.outOfBounds, "relays", "Between 1 and \(NostrLimits.relays).")
        }
        var seen: Set<WebSocketAddress> = []
        return texts.compactMap { text in
            func refuse(_ code: ConfigurationFault.Code, _ sentence: String) -> String? {
                context.fault(code, text.path, text.source, sentence)
                return nil
            }
            // The reader's own sentence says what an address is.
            guard let address = try? WebSocketAddress(text.text), text.text.utf8.count <= Self.relayBytes
            else {
                return refuse(.badValue, "An address such as wss://relay.example.org.")
            }
            guard seen.insert(address).inserted else {
                return refuse(.conflict, "This relay stands twice in the list.")
            }
            guard hasProxy || !address.isOnion else {
                return refuse(.conflict, "An onion service needs a proxy: set proxy.")
            }
            guard address.isSecure || address.isLoopback || address.isOnion else {
                return refuse(.badValue, "Without TLS only on loopback: use wss://.")
            }
            return text.text
        }
    }

    /// A device that is woken once an hour is as good as never woken.
    private static let longestSpan = 3_600
    /// What clients take from a relay list.
    private static let relayBytes = MarmotLimits.relayURLBytes

    private func formats() -> Set<TokenFormat> {
        guard let texts = cursor.list("formats") else { return Set(TokenFormat.allCases) }
        if texts.isEmpty {
            cursor.fault(.badValue, "formats", "At least one format, or leave it out for all.")
        }
        return Set(
            texts.compactMap { text in
                if let format = TokenFormat(rawValue: text.text) { return format }
                let words = TokenFormat.allCases.map(\.rawValue)
                let near = nearest(text.text, among: words).map { " Did you mean \($0)?" } ?? ""
                context.fault(
                    .badValue, text.path, text.source, "Some of \(words.joined(separator: ", ")).\(near)")
                return nil
            })
    }
}

extension MarmotSettings {
    /// What a role takes beside the key in force.
    static let oldKeyLimit = MarmotLimits.serverKeys - 1
}
