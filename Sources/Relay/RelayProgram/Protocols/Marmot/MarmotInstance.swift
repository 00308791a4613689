import AdminIngress
import Delivery
import EventLoops
import MarmotPublishing
import MarmotPush
import NIOCore
import NostrIngress
import PushModel
import Secp256k1Keys
import WebSocket

/// One Marmot instance: it listens at its inbox relays, and hands on what it hears. A reload changes what it
/// listens with and drops no connection that can go on.
final class MarmotInstance: HostedInstance {
    let name: ConfiguredName
    private let nostr: NostrSettings
    private let post: MarmotPost
    /// PEM of the authority to trust.
    private let certificates: [UInt8]?
    private let ingress: NostrIngress
    /// Whether the ingress is that of the instance before, which goes on with other settings.
    private let goesOn: Bool
    /// Who refuses the relay list.
    private let refusals: ListRefusals

    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    init(_ settings: MarmotSettings, _ making: InstanceMaking) throws(CommandFailure) {
        let (name, context, old) = (making.name, making.context, making.old as? MarmotInstance)
        let servesFCM = making.configuration.hasFCM(making.instance)
        self.name = name
        let keys = try Self.keys(settings)
        let certificates: [UInt8]? = try settings.caFile.map { (file) throws(CommandFailure) in
            try CredentialCache.read(file).reveal { Array($0) }
        }
        post = try MarmotPost(
            name, settings, keys: keys, servesFCM: servesFCM, replacing: old?.post, on: context)
        let spans = context.spans
        do throws(WebSocketError) {
            var relays: [NostrRelay] = []
            for url in settings.relays { relays.append(try NostrRelay(url)) }
            let proxy = settings.proxy.map { SOCKS5Proxy(host: $0.host, port: $0.port) }
            nostr = NostrSettings(
                relays: relays, keys: keys, backlog: settings.backlog, proxy: proxy,
                testsItself: settings.selfTest)
            if let old, old.certificates == certificates {
                (ingress, refusals, goesOn) = (old.ingress, old.refusals, true)
            } else {
                let client = try WebSocketClient(
                    executor: LoopExecutor(context.group.next()), limits: spans.nostrConnections,
                    certificates: certificates, world: context.world)
                let refusals = ListRefusals()
                ingress = NostrIngress(
                    name: name, settings: nostr, client: client,
                    document: RelayInformation.fetch(context.web),
                    membership: context.delivery.membership, limits: spans.nostr, world: context.world,
                    journal: refusals.watching(context.journal), metrics: context.metrics,
                    take: post.take)
                (self.refusals, goesOn) = (refusals, false)
            }
        } catch {
            throw CommandFailure(.configuration, "instances.\(name.text): \(error.coded)")
        }
        self.certificates = certificates
    }

    /// The key in force first, then those of before.
    private static func keys(_ settings: MarmotSettings) throws(CommandFailure) -> [Secp256k1KeyPair] {
        var keys: [Secp256k1KeyPair] = []
        for file in [settings.keyFile] + settings.oldKeyFiles {
            keys.append(try NostrKeyFile.read(file))
        }
        guard Set(keys.map(\.publicKey)).count == keys.count else {
            throw CommandFailure(
                .configuration, "\(settings.keyFile): The same key stands in two of the files.")
        }
        return keys
    }

    var publicKeys: [String] { nostr.keys.map(\.publicKey.hex) }
    /// It keeps nothing in the store.
    var needsStore: Bool { false }

    func takeForce() -> [any InstanceService] {
        if goesOn { ingress.adopt(nostr, take: post.take) }
        refusals.keep(Set(nostr.relays.compactMap(ListRefusals.place)))
        return [ingress]
    }

    /// What the role remembers goes when it is over, at a server that hears nothing too.
    func sweep() async throws(StoreError) -> Bool {
        post.forget()
        return false
    }

    func isReady() async -> Bool { await ingress.presence().listening > 0 }
    func hearsNobody() async -> Bool { await ingress.presence().listening == 0 }
    func hearing() async -> IngressReport? {
        let (listening, configured) = await ingress.presence()
        return IngressReport(
            name, peers: NoteCode("inbox relays"), connected: listening, of: configured, hears: listening > 0)
    }

    var troubles: [Alert] { refusals.refusing.map { .instanceRefused(name, by: $0) } }

    /// The relay has taken a list since, or is not listened at any more.
    func isProven(over subject: Alert.Subject) -> Bool {
        let places = Set(nostr.relays.compactMap(ListRefusals.place))
        return !places.contains { place in
            Alert.instanceRefused(name, by: place).subject == subject && !refusals.hasTaken(place)
        }
    }
}

extension NostrIngress: InstanceService {}

extension RelaySpans {
    private enum Nostr: SpanKey { static let standard = NostrLimits() }
    private enum NostrConnections: SpanKey { static let standard = WebSocketLimits() }

    var nostr: NostrLimits {
        get { self[Nostr.self] }
        set { self[Nostr.self] = newValue }
    }

    var nostrConnections: WebSocketLimits {
        get { self[NostrConnections.self] }
        set { self[NostrConnections.self] = newValue }
    }
}
