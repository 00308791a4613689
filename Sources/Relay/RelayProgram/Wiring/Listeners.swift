import AdminIngress
import HTTPIngress
import PushModel

/// The listeners of a relay. They are made with it and stay; what stands behind them is exchanged.
struct Listeners: Sendable {
    let listeners: [HTTPListener]
    private let admin: AdminListener
    /// Those that the service manager has handed over.
    private let sockets: [ConfiguredName: [CInt]]

    /// - Throws: `CommandFailure` that names the listener.
    init(
        _ configuration: RelayConfiguration, admin: AdminListener, alerts: AlertPort, _ around: Surroundings
    ) throws(CommandFailure) {
        (self.admin, sockets) = (admin, around.sockets)
        let descriptors = DescriptorBudget(configuration, limit: around.openFiles)
        var listeners: [HTTPListener] = []
        for facts in configuration.listeners {
            let name = facts.name
            do throws(IngressError) {
                listeners.append(
                    try HTTPListener(
                        name, at: .init(host: facts.bind.host, port: facts.bind.port),
                        inherited: around.sockets[name] ?? [], router: try HTTPRouter([]),
                        limits: Self.limits(facts, around.spans.ingress, descriptors), group: around.group,
                        world: around.world, journal: around.journal, metrics: around.metrics,
                        strained: { strains in
                            let words = ListenerStrain.allCases.filter(strains.contains)
                            let alert = Alert.doorStrained(name, words)
                            if words.isEmpty { alerts.clear(alert.subject) } else { alerts.raise(alert) }
                        }))
            } catch {
                throw Self.failure(error, name)
            }
        }
        self.listeners = listeners
    }

    /// A listener's bounds: what the system lets this process open is divided, and no client has more than a
    /// quarter of a listener, unless that is the operator's own machine at the operator's own listener.
    private static func limits(
        _ listener: ListenerConfiguration, _ standard: IngressLimits, _ descriptors: DescriptorBudget
    ) -> IngressLimits {
        var limits = standard
        if listener.isAdmin { limits.answer = max(limits.answer, IngressLimits.operatorAnswer) }
        if listener.hasWaitingClients { limits.answer = max(limits.answer, IngressLimits.pollAnswer) }
        limits.connections = descriptors.connections(of: listener)
        let isOwn = listener.isAdmin && listener.bind.isLoopback
        let share = isOwn ? limits.connections : max(1, limits.connections / 4)
        limits.clientConnections = min(limits.clientConnections, share)
        return limits
    }

    private static func failure(_ error: IngressError, _ name: ConfiguredName) -> CommandFailure {
        CommandFailure(.configuration, "listeners.\(name.text): \(error.coded)")
    }

    /// Makes what a configuration puts behind the listeners: faces, trusted proxies, certificates.
    ///
    /// - Returns: puts it in force; cannot fail.
    /// - Throws: `CommandFailure` that names the listener or the file at fault.
    func furnish(
        _ configuration: RelayConfiguration, _ instances: [any HostedInstance]
    ) throws(CommandFailure) -> @Sendable () -> Void {
        var exchanges: [@Sendable () -> Void] = []
        for listener in listeners {
            guard let facts = configuration.listener(listener.name) else { continue }
            var faces: [any HTTPFace] = []
            if facts.isAdmin {
                faces.append(try admin.face(facts, of: configuration, instances, beside: listeners))
            } else {
                for name in facts.serves {
                    faces += instances.first { $0.name == name }?.faces ?? []
                }
            }
            do throws(IngressError) {
                let router = try HTTPRouter(faces)
                exchanges.append(try listener.prepareTLS(Self.files(facts)))
                exchanges.append {
                    listener.install(router, proxies: TrustedProxies(facts.trustedProxies))
                }
            } catch {
                throw Self.failure(error, listener.name)
            }
        }
        return { [exchanges] in for exchange in exchanges { exchange() } }
    }

    /// The certificate's files; `nil` without TLS.
    private static func files(_ listener: ListenerConfiguration) -> TLSFiles? {
        listener.tls.map { TLSFiles(certificateChain: $0.certificateFile, privateKey: $0.keyFile) }
    }

    /// Takes every listener's address.
    ///
    /// - Returns: listener → base URL.
    /// - Throws: `CommandFailure(.unavailable)` that names the listener.
    func listen(_ configuration: RelayConfiguration) async throws(CommandFailure) -> [String: String] {
        var urls: [String: String] = [:]
        for listener in listeners {
            do throws(IngressError) {
                let port = try await listener.open()
                guard let facts = configuration.listener(listener.name) else { continue }
                let inherited = sockets[listener.name]?.first.flatMap { InheritedSockets.host(of: $0) }
                let name = inherited ?? facts.bind.host
                let host = name.contains(":") ? "[\(name)]" : name
                urls[listener.name.text] = "\(facts.tls == nil ? "http" : "https")://\(host):\(port)"
            } catch {
                throw CommandFailure(.unavailable, "listeners.\(listener.name.text): \(error.coded)")
            }
        }
        return urls
    }
}
