import AdminIngress
import Delivery
import HTTPIngress
import Primitives
import PushModel
import SessionPush
import SwarmIngress
import WireFormats

/// One Session instance: a face at listeners, and a link to the swarm. A reload changes the face at once, and
/// drops no connection to a storage node unless oxend is another one.
final class SessionInstance: CountingInstance {
    let name: ConfiguredName
    let tally: NoteTally
    private let onion: X25519KeyPair
    private let core: X25519KeyPair
    private let relay: SessionRelay
    private let sessionFace: SessionFace
    private let post: SessionPost
    private let daemon: DaemonAddress
    private let ingress: SwarmIngress
    /// Whether the link is that of the instance before, which goes on.
    private let goesOn: Bool
    private let subscribed: Bell

    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    init(_ settings: SessionSettings, _ making: InstanceMaking) throws(CommandFailure) {
        let (context, old) = (making.context, making.old as? SessionInstance)
        name = making.name
        onion = try SessionKeyFile.read(settings.onionKeyFile)
        core = try SessionKeyFile.core(
            name, state: making.configuration.state, isRehearsal: context.isRehearsal, context.world)
        let tally = old?.tally ?? NoteTally(of: Self.countedNotes, context.world)
        let relay = SessionRelay(
            instance: name, apps: Self.apps(settings, making.configuration), policy: settings.policy,
            registry: context.registry, seen: old?.relay.seen ?? SeenNotices(),
            proved: old?.relay.proved ?? ProvedSigners(), charge: making.charge, world: context.world)
        self.relay = relay
        let reception = making.reception(relay, tally: tally)
        self.tally = tally
        post = SessionPost(NoticeConversation(with: relay), reception, context.metrics)
        guard let daemon = DaemonAddress(settings) else {
            throw CommandFailure(.configuration, "instances.\(name): oxend is no address.")
        }
        self.daemon = daemon
        if let old, old.daemon == daemon, old.core.publicKey == core.publicKey {
            (ingress, subscribed, goesOn) = (old.ingress, old.subscribed, true)
        } else {
            let bell = Bell()
            ingress = SwarmIngress(
                name: name,
                settings: SwarmSettings(daemon: daemon, pair: core, space: relay.keys.subscriptions),
                registry: context.registry, bell: bell, membership: context.delivery.membership,
                limits: context.spans.swarm, world: context.world, journal: context.journal,
                metrics: context.metrics, parse: { MonitorRequest($0) }, take: post.take)
            (subscribed, goesOn) = (bell, false)
        }
        sessionFace = SessionFace(
            SessionConversation(onion: onion, world: context.world), reception,
            hasPlainHTTP: settings.hasPlainHTTP, subscribed: subscribed, charge: making.charge)
    }

    private static func apps(_ settings: SessionSettings, _ configuration: RelayConfiguration) -> SessionApps
    {
        var apps: [SessionService: SessionApp] = [:]
        for (service, name) in settings.services {
            guard let app = configuration.app(name) else { continue }
            apps[service] = SessionApp(
                name: name, bundle: app.apns?.bundles.first,
                aps: app.fallback == .standard ? nil : app.fallback.aps)
        }
        return SessionApps(apps)
    }

    var publicKeys: [String] { [Hex.encode(onion.publicKey)] }
    /// Of what storage nodes and oxend know the relay by.
    var coreKey: String { Hex.encode(core.publicKey) }
    var face: (any HTTPFace)? { sessionFace }
    var override: (@Sendable (Answer) -> Outcome?)? { { SessionRelay.override($0) } }
    var link: SwarmStatistics { ingress.statistics }

    func takeForce() -> [any InstanceService] {
        if goesOn { ingress.adopt(take: post.take) }
        return [ingress]
    }

    /// It takes subscriptions whether or not it hears of messages, so it is ready with its listener.
    ///
    /// Whether it hears: some of the nodes that fall to this process are connected, or others have them all.
    func hearsNobody() async -> Bool {
        link.hearsNobody
    }

    func hearing() async -> IngressReport? {
        let link = link
        return IngressReport(
            name, peers: NoteCode("storage nodes"), connected: link.connected, of: link.ours,
            hears: !link.hearsNobody, queued: link.queued,
            lacks: link.isDaemonConnected ? nil : NoteCode("oxend does not answer"))
    }

    /// Of this process's nodes; the others say their own.
    var troubles: [Alert] {
        let refused = link.refused
        return refused > 0 ? [.watchesRefused(name, refused)] : []
    }

    /// Subscriptions, and the slots that they take.
    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        [
            keys.address(of: address, bundle: appID),
            keys.slotAddress(of: address, bundle: appID)
        ]
    }

    func isDevice(_ record: RecordKey) -> Bool { record.space != keys.slots }

    /// A Session ID or a group's: 66 hexadecimal digits.
    func places(ofAccount account: String) -> AccountPlaces {
        // What is no hexadecimal is no account.
        guard let bytes = try? Hex.decode(account.utf8), let id = AccountID(Secret(bytes)) else {
            return AccountPlaces()
        }
        return AccountPlaces(owners: [keys.owner(id)])
    }

    var registrationSpaces: [Space] { [keys.subscriptions] }

    private var keys: SessionRecordNames { relay.keys }
}

extension SwarmIngress: InstanceService {}

extension DaemonAddress {
    /// `nil` where the settings name none.
    init?(_ settings: SessionSettings) {
        guard let address = settings.oxend else { return nil }
        guard let text = settings.oxendKey else {
            self.init(address.text)
            return
        }
        // The reader has checked the digits.
        guard let bytes = try? Hex.decode(Array(text.utf8)), let key = NodeKey(bytes) else { return nil }
        self.init(address.text, key: key)
    }
}

extension RelaySpans {
    private enum Swarm: SpanKey { static let standard = SwarmLimits() }

    /// Deadlines and bounds of the link to the swarm.
    var swarm: SwarmLimits {
        get { self[Swarm.self] }
        set { self[Swarm.self] = newValue }
    }
}
