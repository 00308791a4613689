import AdminIngress
import Delivery
import PushModel
import Secp256k1Keys
import StatusPush
import WakuIngress
import WebClient
import WireFormats

/// One Status instance: it listens at a Waku node, and answers there. A reload that keeps key and node ends
/// nothing that is under way.
final class StatusInstance: CountingInstance {
    let name: ConfiguredName
    let tally: NoteTally
    private let settings: StatusInstanceSettings
    private let identity: Secp256k1KeyPair
    /// When this process began to hear the network as this instance.
    private let heardSince: UnixTime
    private let relay: StatusRelay
    private let post: StatusPost
    /// What has the credentials; `nil`: our own lanes deliver.
    private let gateway: GorushGateway?
    private let outlet: WakuOutlet
    private let ingress: WakuIngress
    private let link: StatusLink

    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    init(_ settings: StatusInstanceSettings, _ making: InstanceMaking) throws(CommandFailure) {
        let (context, old) = (making.context, making.old as? StatusInstance)
        let (name, identity) = (making.name, try StatusKeyFile.read(settings.keyFile))
        (self.name, self.identity) = (name, identity)
        self.settings = settings
        heardSince = old?.heardSince ?? context.world.now()
        guard let peer = settings.waku, let node = WakuNode(peer.url.text) else {
            throw CommandFailure(.configuration, "instances.\(name): waku is no address of a node.")
        }
        let tally = old?.tally ?? NoteTally(of: Self.countedNotes, context.world)
        var policy = settings.policy
        // Without apps a gateway has the credentials, and knows what may register.
        policy.servedTopics =
            making.instance.apps.isEmpty
            ? nil : Set(making.apps.flatMap { $0.apns?.registeredAppIDs ?? [] })
        let relay = StatusRelay(
            instance: name, identity: identity, policy: policy, registry: context.registry,
            allowances: settings.allowances, charge: making.charge,
            reportWithin: context.spans.statusHost.report, world: context.world)
        let reception = making.reception(relay, tally: tally)
        (self.relay, self.tally) = (relay, tally)
        let limits = context.spans.statusHost
        // Who was followed stays followed, unless the server is another one.
        let before = old.flatMap { $0.identity.point == identity.point ? $0 : nil }
        let topics =
            before?.link.topics
            ?? StatusTopics(
                of: identity.point, relay.keys, registry: context.registry, limits: limits,
                world: context.world)
        let share = before?.link.share ?? StatusShare(of: name, context.delivery.membership)
        // The way to the node stays, unless it is another node.
        let linked = before.flatMap { $0.settings.waku == settings.waku ? $0 : nil }
        let outlet =
            linked?.outlet
            ?? WakuOutlet(
                name: name, node: node, web: Self.web(to: peer, on: context), limits: context.spans.waku,
                world: context.world, metrics: context.metrics)
        let gateway = settings.gorush.map { peer in
            GorushGateway(peer.url.text, web: Self.web(to: peer, on: context), of: name, on: context)
        }
        let post = StatusPost(
            StatusConversation(
                with: relay, heardSince: heardSince, clockSlack: WakuLimits.timestampSlack),
            reception, topics: topics, share: share, gateway: gateway, outlet: outlet, on: context)
        (self.outlet, self.post, self.gateway) = (outlet, post, gateway)
        let ingress =
            linked?.ingress
            ?? WakuIngress(
                beside: outlet, topics: topics.followed, limits: context.spans.waku, world: context.world,
                journal: context.journal, take: post.take)
        self.ingress = ingress
        link =
            before?.link
            ?? StatusLink(topics, share: share, ingress: ingress, limits: limits, world: context.world)
    }

    /// One that trusts the peer's own authority as well goes through no proxy: such a host is the operator's.
    private static func web(
        to peer: StatusInstanceSettings.Peer, on context: HostingContext
    ) -> any WebFetch {
        guard let file = peer.caFile else { return context.web }
        return HTTPSFetch(
            WebOptions(extraAuthorities: [file]), group: context.group, world: context.world)
    }

    var publicKeys: [String] { [StatusKeyFile.publicText(identity.point)] }
    var override: (@Sendable (Answer) -> Outcome?)? { { StatusRelay.override($0) } }
    var waku: WakuStatistics { ingress.statistics }
    /// Times that the store was asked for a topic's keys.
    var topicReads: Int { link.topics.reads }

    func takeForce() -> [any InstanceService] {
        ingress.adopt(take: post.take)
        link.adopt(ingress)
        return [link, ingress]
    }

    func isReady() async -> Bool { !waku.hearsNobody }
    func hearsNobody() async -> Bool { waku.hearsNobody }

    func hearing() async -> IngressReport? {
        let waku = waku
        let lacks: NoteCode? =
            switch waku.health {
            case .alone: NoteCode("the node has no peers")
            case .partlyConnected: NoteCode("the node has few peers")
            case .connected, .unknown: waku.hasGap ? NoteCode("missed messages are fetched") : nil
            }
        return IngressReport(
            name, peers: NoteCode("Waku node"), connected: waku.isListening ? 1 : 0, of: 1,
            hears: !waku.hearsNobody, queued: waku.queued, lacks: lacks)
    }

    /// Of this process's node; the others say their own.
    var troubles: [Alert] {
        let (waku, failures) = (waku, gateway?.failures ?? 0)
        return (waku.missed > 0 ? [.messagesMissed(name, waku.missed)] : [])
            + (waku.refused > 0 ? [.answersRefused(name, waku.refused)] : [])
            + (failures > 0 ? [.gatewayFailing(name, failures)] : [])
    }

    func isProven(over subject: Alert.Subject) -> Bool {
        switch subject.kind {
        case .answersRefused: waku.published > 0
        case .gatewayFailing: gateway?.hasTaken ?? true
        default: true
        }
    }

    /// Topics of people of whom no registration is left go, a page of them each time.
    func sweep() async throws(StoreError) -> Bool { try await link.topics.sweep(by: relay) }

    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        [StatusRecordNames(name).address(of: address, bundle: appID)]
    }

    /// The hash of a person's public key, in hexadecimal, as queries have it.
    func places(ofAccount account: String) -> AccountPlaces {
        // What is no hexadecimal is no hash.
        guard let bytes = try? Hex.decode(account.utf8), bytes.count == StatusHash.personBytes else {
            return AccountPlaces()
        }
        return AccountPlaces(owners: [StatusRecordNames(name).owner(Secret(bytes))])
    }

    var registrationSpaces: [Space] { [StatusRecordNames(name).registrations] }
}
