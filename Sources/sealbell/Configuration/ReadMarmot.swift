import MarmotPush
import NostrIngress
import PushModel
import WebSocket

extension ConfigurationReader {
    func marmot(_ name: ConfiguredName, _ cursor: MappingCursor) -> InstanceConfiguration? {
        let apps = instanceApps(cursor)
        if apps.count > 1 {
            cursor.fault(
                .conflict, "apps",
                "A trigger names no app, so an instance serves one; give each app an instance and a key.")
        }
        let key = cursor.file("key_file", .nostrKey)
        if cursor.node["key_file"] == nil {
            cursor.missing("key_file", "Name the server's key file; sealbell keys new nostr makes one.")
        }
        let old = oldKeys(cursor)
        let bundle = apps.first.flatMap { self.bundle(cursor, of: $0) }
        let proxy = cursor.parsed(
            "proxy", SOCKSAddress.init, "An address such as socks5://127.0.0.1:9050, without a password.")
        let relays = relays(cursor, hasProxy: cursor.node["proxy"] != nil)
        let marmot = MarmotInstanceConfiguration(
            bundle: bundle, keyFile: key ?? "", oldKeyFiles: old, relays: relays, formats: formats(cursor),
            mode: cursor.choice("mode", default: MarmotInstanceConfiguration.Mode.silent),
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
        guard key != nil, !apps.isEmpty else { return nil }
        return InstanceConfiguration(name: name, kind: .marmot(marmot), apps: apps)
    }

    private func oldKeys(_ cursor: MappingCursor) -> [String] {
        let texts = cursor.list("old_key_files") ?? []
        if texts.count > MarmotInstanceConfiguration.oldKeyLimit {
            cursor.fault(
                .outOfBounds, "old_key_files", "At most \(MarmotInstanceConfiguration.oldKeyLimit).")
        }
        return texts.map { text in
            let file = context.absolute(text.text, from: text.source)
            context.files.append(
                ConfiguredFile(content: .nostrKey, file: file, path: text.path.text, source: text.source))
            return file
        }
    }

    /// The bundle id of every push: the one named, else the app's only one.
    private func bundle(_ cursor: MappingCursor, of app: ConfiguredName) -> String? {
        var bundles: [String] = []
        if case .list(let items)? = root["apps"]?[app.text]?["apns"]?["bundles"]?.value {
            bundles = items.compactMap { if case .scalar(let text) = $0.value { text } else { nil } }
        }
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

    private func relays(_ cursor: MappingCursor, hasProxy: Bool) -> [String] {
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
                return refuse(.conflict, "An onion service is reached through a proxy alone: set proxy.")
            }
            guard address.isSecure || address.isLoopback || address.isOnion else {
                return refuse(.badValue, "Without TLS on loopback alone: wss://.")
            }
            return text.text
        }
    }

    /// A device that is woken once an hour is as good as never woken.
    private static let longestSpan = 3_600
    /// What clients take from a relay list.
    private static let relayBytes = MarmotLimits.relayURLBytes

    private func formats(_ cursor: MappingCursor) -> Set<TokenFormat> {
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

extension MarmotInstanceConfiguration {
    /// What a role takes beside the key in force.
    static let oldKeyLimit = MarmotLimits.serverKeys - 1
}
