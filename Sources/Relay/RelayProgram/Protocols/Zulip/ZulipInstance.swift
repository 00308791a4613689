import Delivery
import HTTPIngress
import PushModel
import Synchronization
import WebClient
import WireFormats
import ZulipPush

/// One Zulip instance: a face at listeners over the relay's role, and the servers that have signed up.
final class ZulipInstance: HostedInstance {
    let name: ConfiguredName
    let publicKeys: [String]
    /// With realms, devices and keys, for the operator's calls.
    let servers: ZulipServers
    /// The keys of the instance's file stand in the store.
    private let areKeysNoted = Atomic(false)
    private let zulipFace: ZulipFace

    /// - Throws: `CommandFailure` that names the file of the keys.
    init(_ settings: ZulipSettings, _ making: InstanceMaking) throws(CommandFailure) {
        let context = making.context
        name = making.name
        let keys = BouncerKeys(try BouncerKeysFile.read(settings.keysFile))
        publicKeys = keys.publicKeys
        servers = ZulipServers(name, context.registry, world: context.world)
        let relay = ZulipRelay(
            instance: name, bouncerKeys: keys, admission: settings.signUp, registry: context.registry,
            web: context.web, mailDomains: settings.mxLookup ? MailExchangeResolver.system : nil,
            fallbacks: Self.fallbacks(making.apps), defaultAppID: settings.defaultBundle,
            replyDeadline: context.spans.zulipReply, charge: making.charge, world: context.world)
        zulipFace = ZulipFace(
            ZulipConversation(with: relay), making.reception(relay), events: context.events)
    }

    /// The words of the instance's apps that have their own.
    private static func fallbacks(_ apps: [AppConfiguration]) -> FallbackAlerts {
        var byBundle: [String: FallbackAlerts.Words] = [:]
        for app in apps where app.fallback != .standard {
            for bundle in app.apns?.bundles ?? [] {
                byBundle[bundle] = FallbackAlerts.Words(aps: app.fallback.aps, alert: app.fallback.alert)
            }
        }
        return FallbackAlerts(byBundle)
    }

    var override: (@Sendable (Answer) -> Outcome?)? { { ZulipRelay.override($0) } }
    var face: (any HTTPFace)? { zulipFace }
    var origins: (any OriginControl)? { servers }

    /// What servers that left have left behind; and first, after a start and a reload, since when keys stand
    /// in the file.
    func sweep() async throws(StoreError) -> Bool {
        if !areKeysNoted.load(ordering: .relaxed) {
            try await servers.noteKeys(publicKeys)
            areKeysNoted.store(true, ordering: .relaxed)
        }
        return try await servers.sweep() > 0
    }

    func keysInForce() async throws(StoreError) -> [KeyInForce] {
        let now = servers.now()
        return try await servers.uses(of: publicKeys).map { use in
            KeyInForce(
                publicKey: use.publicKey,
                uses: KeyInForce.Uses(
                    since: use.since, recent: use.count(within: ZulipLimits.keyUseDays, of: now),
                    recentDays: ZulipLimits.keyUseDays,
                    knownDays: ZulipLimits.keyUsesKept.components.seconds / 86_400, days: use.days))
        }
    }

    /// The index is the same over all instances.
    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        [servers.address(address, appID: appID)]
    }

    var registrationSpaces: [Space] { servers.registrationSpaces }

    /// `realm` and `token_id` or `device_id`, as the device's server names it.
    func registrations(named names: [String: String]) async throws(StoreError) -> [Record] {
        guard let realm = names["realm"].flatMap({ UUIDText($0) }),
            let device = DeviceName(tokenID: names["token_id"], number: names["device_id"]),
            let record = try await servers.record(realm, device)
        else { return [] }
        return [record]
    }
}

/// What the relay asks about the domain of a contact mail.
extension MailExchangeResolver: MailDomains {
    func takesMail(_ domain: String) async -> Bool? {
        switch await exchange(of: domain) {
        case .present: true
        case .absent: false
        case .unknown: nil
        }
    }
}

extension RelaySpans {
    private enum ZulipReply: SpanKey { static let standard = ZulipLimits.replyDeadline }

    /// How long an answer to a Zulip server waits for first attempts.
    var zulipReply: Duration {
        get { self[ZulipReply.self] }
        set { self[ZulipReply.self] = newValue }
    }
}
