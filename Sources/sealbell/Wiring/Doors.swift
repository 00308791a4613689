import AdminIngress
import CoreMetrics
import Delivery
import HTTPIngress
import NIOCore
import PushModel
import WebClient
import ZulipPush

/// The listeners of a configuration and the faces behind them.
struct Doors {
    let configuration: RelayConfiguration
    let delivery: DeliveryService
    let registry: any Registry
    let web: any WebFetch
    let group: any EventLoopGroup
    let world: World
    let journal: Journal
    let metrics: any MetricsFactory
    let spans: RelaySpans
    let descriptors: DescriptorPlan
    let alerts: AlertPort
    /// Asked where an instance has `mx_lookup`.
    var mailExchanges = MailExchangeResolver.system
    /// The admin listener's face.
    let admin: @Sendable (ListenerConfiguration) throws(CommandFailure) -> any HTTPFace

    /// The words of the instance's apps that have their own.
    private func fallbacks(_ instance: InstanceConfiguration) -> FallbackAlerts {
        var byBundle: [String: [UInt8]] = [:]
        for app in instance.apps.compactMap(configuration.app) where app.fallback != .standard {
            for bundle in app.apns?.bundles ?? [] { byBundle[bundle] = app.fallback.aps }
        }
        return FallbackAlerts(byBundle)
    }

    /// Every instance's face, and the public keys that its devices need.
    struct Face {
        let face: any HTTPFace
        let publicKeys: [String]
    }

    func faces() throws(CommandFailure) -> [ConfiguredName: Face] {
        var faces: [ConfiguredName: Face] = [:]
        for instance in configuration.instances {
            switch instance.kind {
            case .zulip(let zulip): faces[instance.name] = try face(instance, zulip)
            case .marmot: continue
            }
        }
        return faces
    }

    func router(
        _ listener: ListenerConfiguration, _ faces: [ConfiguredName: Face]
    ) throws(CommandFailure) -> HTTPRouter {
        let served: [any HTTPFace] =
            listener.isAdmin ? [try admin(listener)] : listener.serves.compactMap { faces[$0]?.face }
        do throws(IngressError) {
            return try HTTPRouter(served)
        } catch {
            throw CommandFailure(.configuration, "listeners.\(listener.name.text): \(error.sentence)")
        }
    }

    /// - Parameter sockets: of each listener those that listen already; none: its address is taken.
    func listeners(
        _ faces: [ConfiguredName: Face], on sockets: [ConfiguredName: [CInt]]
    ) throws(CommandFailure) -> [HTTPListener] {
        var listeners: [HTTPListener] = []
        for facts in configuration.listeners {
            listeners.append(try listener(facts, faces, on: sockets[facts.name] ?? []))
        }
        return listeners
    }

    private func listener(
        _ listener: ListenerConfiguration, _ faces: [ConfiguredName: Face], on sockets: [CInt]
    ) throws(CommandFailure) -> HTTPListener {
        let router = try router(listener, faces)
        let (name, alerts) = (listener.name, alerts)
        do throws(IngressError) {
            return try HTTPListener(
                listener.name, at: .init(host: listener.bind.host, port: listener.bind.port),
                inherited: sockets, tls: Self.files(listener),
                proxies: TrustedProxies(listener.trustedProxies), router: router, limits: limits(listener),
                group: group, world: world, journal: journal, metrics: metrics,
                strained: { strains in
                    let words = DoorStrain.allCases.filter(strains.contains)
                    let alert = Alert.doorStrained(name, words)
                    if words.isEmpty { alerts.clear(alert.subject) } else { alerts.raise(alert) }
                })
        } catch {
            throw CommandFailure(.configuration, "listeners.\(listener.name.text): \(error.sentence)")
        }
    }

    /// A listener's bounds: what the system lets this process open is divided, and no client has more than a
    /// quarter of a door, unless that is the operator's own machine at the operator's own door.
    private func limits(_ listener: ListenerConfiguration) -> IngressLimits {
        var limits = spans.ingress
        limits.connections = descriptors.connections(of: listener)
        let isOwn = listener.isAdmin && listener.bind.isLoopback
        let share = isOwn ? limits.connections : max(1, limits.connections / 4)
        limits.clientConnections = min(limits.clientConnections, share)
        return limits
    }

    /// The certificate's files; `nil` without TLS.
    static func files(_ listener: ListenerConfiguration) -> TLSFiles? {
        listener.tls.map { TLSFiles(certificateChain: $0.certificateFile, privateKey: $0.keyFile) }
    }

    private func face(
        _ instance: InstanceConfiguration, _ zulip: ZulipInstanceConfiguration
    ) throws(CommandFailure) -> Face {
        let file = try CredentialShelf.read(zulip.keysFile)
        let keys: BouncerKeys
        do throws(BouncerKeysFile.Fault) {
            keys = BouncerKeys(try BouncerKeysFile.parse(file))
        } catch {
            throw CommandFailure(.configuration, "\(zulip.keysFile): \(error.sentence)")
        }
        let admission: ZulipAdmission =
            switch zulip.signUp {
            case .open: .open
            case .allowList(let hosts): .allowList(hosts)
            case .invite: .invitation
            }
        let tolls = delivery.tolls(of: instance.name)
        let relay = ZulipRelay(
            instance: instance.name, bouncerKeys: keys, admission: admission, registry: registry, web: web,
            mailDomains: zulip.mxLookup ? MailExchanges(resolver: mailExchanges) : nil,
            fallbacks: fallbacks(instance), replyDeadline: spans.zulipReply, charge: { tolls.take($0) },
            world: world)
        let notes = NoteMeter(instance.name, metrics)
        let face = ZulipFace(
            Reception(
                relay, of: instance.name, intake: delivery.intake,
                pushesPerMinute: configuration.limits.pushesPerMinute ?? 0, tolls: tolls,
                note: { notes.count($0) }))
        return Face(face: face, publicKeys: keys.publicKeys)
    }
}

/// What the relay asks about the domain of a contact mail.
struct MailExchanges: MailDomains {
    let resolver: MailExchangeResolver

    func takesMail(_ domain: String) async -> Bool? {
        switch await resolver.exchange(of: domain) {
        case .present: true
        case .absent: false
        case .unknown: nil
        }
    }
}
