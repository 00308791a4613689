import PushModel
import ZulipPush

/// What the section `origin` says (docs/configuration.md): the server half, for its own users and apps.
struct OriginSection: Sendable, Hashable {
    struct RelayPlace: Sendable, Hashable {
        /// Scheme, host and perhaps port.
        var url: String
        /// PEM file of the authority to trust instead of the system's.
        var authorityFile: String?
    }

    /// The public address, without a slash at the end; the first realm's.
    var url: String
    /// `nil`: the relay of this process.
    var relay: RelayPlace?
    /// Where id and key at the relay stand once the server has signed up.
    var credentialsFile: String
    /// The mail address that the relay is told.
    var contact: String?
    /// Opens the door of applications; `nil`: it is shut.
    var applicationTokenFile: String?
    var requiresEncryption: Bool
    var profiles: Set<ZulipProfile>
    var times: ZulipQueueTimes
    var staleList: Bool
    /// Whether phones may name a proxy on this machine or in a private network.
    var allowsLocalProxies: Bool
    var limits: Limits

    struct Limits: Sendable, Hashable {
        var devicesPerUser = ZulipOriginLimits.recordsPerUser
        var waitingPolls = 4_000
        var queuesPerUser = ZulipOriginLimits.queuesPerUser
        var eventsPerQueue = ZulipOriginLimits.eventsPerQueue
        var notifyPerMinute = 60_000
    }

    static let keys = [
        "url", "relay", "credentials", "contact", "application_token_file", "require_e2ee", "profiles",
        "queue",
        "stale_list", "limits", "nextcloud"
    ]
    static let nextcloudKeys = ["allow_local_proxies"]
    static let relayKeys = ["url", "ca"]
    static let queueKeys = ["first_retry", "longest_retry", "end"]
    static let limitKeys = [
        "devices_per_user", "waiting_polls", "queues_per_user", "events_per_queue", "notify_per_minute"
    ]
}

extension OriginSection: InstanceSettings, LaneBringing {
    static let paths = ["/api/v1/", "/notify", "/ocs/"]

    /// A lane for each kind of call, so that none waits for another, and nobody's notification for a proxy
    /// that somebody's phone has named.
    static func lanes(of instance: ConfiguredName) -> [(kind: UplinkMessage.Kind, lane: LaneName)] {
        let kinds: [(UplinkMessage.Kind, String)] = [
            (.registration, "registration"), (.notification, "notification"), (.staleList, "stale-list"),
            (.proxy, "proxy")
        ]
        return kinds.compactMap { kind, word in
            ConfiguredName("\(instance.text).\(word)").map {
                (kind, LaneName(app: $0, service: .uplink, environment: .production))
            }
        }
    }

    func lanes(of instance: ConfiguredName) -> [LaneName] { Self.lanes(of: instance).map(\.lane) }

    var peers: [PeerAddress] {
        guard let relay, let url = HTTPSBase(relay.url) else { return [] }
        return [PeerAddress(host: url.host, port: url.port, caFile: relay.authorityFile)]
    }
}

extension InstanceReader {
    /// Reads the section.
    func origin() -> OriginSection? {
        let url = publicURL()
        let relay = relayPlace()
        let credentials =
            cursor.text("credentials").map { context.absolute($0.text, from: $0.source) }
            ?? context.absolute("origin-credentials.json", from: .builtIn)
        let contact = contact()
        let token = cursor.file("application_token_file", .token)
        guard let url else { return nil }
        return OriginSection(
            url: url, relay: relay, credentialsFile: credentials, contact: contact,
            applicationTokenFile: token, requiresEncryption: cursor.flag("require_e2ee", default: false),
            profiles: profiles(), times: times(), staleList: cursor.flag("stale_list", default: true),
            allowsLocalProxies: allowsLocalProxies(), limits: limits())
    }

    private func publicURL() -> String? {
        guard cursor.node["url"] != nil else {
            if context.isSandbox { return "http://127.0.0.1:8490" }
            cursor.missing(
                "url", "Say by which address clients reach this server: url: https://chat.example.")
            return nil
        }
        return cursor.parsed(
            "url", OriginURL.read,
            "An https address without a path; http only for this machine, such as http://127.0.0.1:8490.")
    }

    private func relayPlace() -> OriginSection.RelayPlace? {
        guard let relay = cursor.cursor("relay", keys: OriginSection.relayKeys) else { return nil }
        let authority = relay.file("ca", .authority)
        guard relay.node["url"] != nil else {
            relay.missing("url", "Say where the relay is: url: https://push.example.")
            return nil
        }
        let url = relay.parsed(
            "url", OriginURL.read, "An https address without a path; http only for this machine.")
        return url.map { OriginSection.RelayPlace(url: $0, authorityFile: authority) }
    }

    private func contact() -> String? {
        cursor.parsed(
            "contact", { $0.contains("@") && $0.utf8.count <= 254 ? $0 : nil }, "A mail address.")
    }

    private func profiles() -> Set<ZulipProfile> {
        guard let texts = cursor.list("profiles") else { return Set(ZulipProfile.allCases) }
        var found: Set<ZulipProfile> = []
        for text in texts {
            guard let profile = ZulipProfile.allCases.first(where: { "\($0)" == text.text }) else {
                context.fault(
                    .badValue, text.path, text.source,
                    "One of \(ZulipProfile.allCases.map { "\($0)" }.joined(separator: ", ")).")
                continue
            }
            found.insert(profile)
        }
        if texts.isEmpty { cursor.fault(.badValue, "profiles", "A server serves at least one profile.") }
        return found
    }

    private func times() -> ZulipQueueTimes {
        var times = ZulipQueueTimes()
        guard let queue = cursor.cursor("queue", keys: OriginSection.queueKeys) else { return times }
        times.first = span("first_retry", queue, 1...3_600, times.first)
        times.longest = span("longest_retry", queue, 1...3_600, times.longest)
        times.end = span("end", queue, 3_600...2_592_000, times.end)
        if times.first > times.longest {
            queue.fault(.conflict, "longest_retry", "The longest wait is at least the first.")
        }
        return times
    }

    /// Seconds, or with a unit: `30s`, `1h`, `7d`.
    private func span(
        _ key: String, _ cursor: MappingCursor, _ bounds: ClosedRange<Int>, _ standard: Duration
    ) -> Duration {
        guard cursor.node[key] != nil else { return standard }
        let seconds = cursor.parsed(key, Self.seconds, "A span of time, such as 30s, 10m, 1h or 7d.")
        guard let seconds else { return standard }
        guard bounds.contains(seconds) else {
            cursor.fault(
                .outOfBounds, key, "Between \(bounds.lowerBound) and \(bounds.upperBound) seconds.")
            return standard
        }
        return .seconds(seconds)
    }

    private static func seconds(_ text: String) -> Int? {
        let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        let unit = units.first { text.hasSuffix($0.0) }
        guard let number = decimal(unit == nil ? text[...] : text.dropLast()) else { return nil }
        let (seconds, isTooLarge) = number.multipliedReportingOverflow(by: unit?.1 ?? 1)
        return isTooLarge ? nil : seconds
    }

    private func allowsLocalProxies() -> Bool {
        cursor.cursor("nextcloud", keys: OriginSection.nextcloudKeys)?
            .flag("allow_local_proxies", default: context.isSandbox) ?? context.isSandbox
    }

    private func limits() -> OriginSection.Limits {
        var limits = OriginSection.Limits()
        guard let cursor = cursor.cursor("limits", keys: OriginSection.limitKeys) else { return limits }
        limits.devicesPerUser = cursor.number("devices_per_user", in: 1...100, default: limits.devicesPerUser)
        limits.waitingPolls = cursor.number("waiting_polls", in: 1...20_000, default: limits.waitingPolls)
        limits.queuesPerUser = cursor.number("queues_per_user", in: 1...100, default: limits.queuesPerUser)
        limits.eventsPerQueue = cursor.number(
            "events_per_queue", in: 10...10_000, default: limits.eventsPerQueue)
        limits.notifyPerMinute = cursor.number(
            "notify_per_minute", in: 1...10_000_000, default: limits.notifyPerMinute)
        return limits
    }
}

/// Addresses of servers, as this section has them.
enum OriginURL {
    /// - Returns: the address without a slash at the end; `nil` for one with a path, a user or a query, and
    ///   for plain http that leaves this machine.
    static func read(_ text: String) -> String? {
        let trimmed = text.hasSuffix("/") ? String(text.dropLast()) : text
        if HTTPSBase(trimmed) != nil { return trimmed }
        guard trimmed.hasPrefix("http://") else { return nil }
        let place = trimmed.dropFirst(7)
        let port = place.lastIndex(of: ":").map { place[place.index(after: $0)...] }
        let host = port == nil ? place : place.dropLast((port?.count ?? 0) + 1)
        guard ["127.0.0.1", "[::1]", "localhost"].contains(host),
            port.map({ (0...65_535).contains(decimal($0) ?? -1) }) != false
        else { return nil }
        return trimmed
    }
}
