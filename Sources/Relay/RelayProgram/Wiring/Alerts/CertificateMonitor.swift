import AdminIngress
import PushModel
import ServiceLifecycle
import Synchronization

/// Raises an alert when a certificate that a listener shows nears its end, and another when it has ended.
///
/// What counts is the certificate in force: one that was renewed on the disk and not reloaded still runs out.
/// So files are read at start and at each reload, and the clock is looked at in between.
final class CertificateMonitor: Service, Sendable {
    /// Automatic renewal happens about thirty days before; by then it has failed for two weeks.
    static let soonDays = 14
    private static let grain = Duration.seconds(3600)

    private let alerts: AlertPort
    private let world: World
    private let spans = Mutex<[ConfiguredName: CertificateSpan]>([:])

    init(_ alerts: AlertPort, _ world: World) {
        self.alerts = alerts
        self.world = world
    }

    /// Reads the certificates that a configuration has put in force.
    func adopt(_ configuration: RelayConfiguration) {
        var fresh: [ConfiguredName: CertificateSpan] = [:]
        for listener in configuration.listeners {
            if let tls = listener.tls { fresh[listener.name] = CertificateSpan(file: tls.certificateFile) }
        }
        spans.withLock { $0 = fresh }
        // Those too that a process before this one has told.
        let named = Set(fresh.keys.map(\.text))
        for alert in alerts.raised {
            let subject = alert.subject
            if subject.kind == .certificateExpiring, !named.contains(subject.name) { alerts.clear(subject) }
        }
        look()
    }

    /// Listeners with TLS, and the days that each certificate has left; 0 when it has ended.
    func days() -> [(listener: ConfiguredName, days: Int)] {
        let now = world.now()
        return spans.withLock { $0 }.map { ($0.key, $0.value.days(at: now)) }.sorted { $0.0 < $1.0 }
    }

    func look() {
        for (name, days) in days() {
            let alert = Alert.certificateExpiring(name, days: days)
            if days <= Self.soonDays { alerts.raise(alert) } else { alerts.clear(alert.subject) }
        }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                // The sleep ends early only by cancellation, which ends the watch.
                do { try await self.world.sleep(self.world.instant() + Self.grain) } catch { return }
                self.look()
            }
        }
    }
}
