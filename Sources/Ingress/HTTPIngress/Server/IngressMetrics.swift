import CoreMetrics
import PushModel

/// Names of this target's metrics.
enum IngressMetric: String, CaseIterable {
    case requests = "sealbell_http_requests_total"
    case refusals = "sealbell_http_refusals_total"
    case seconds = "sealbell_http_request_seconds"
    case connections = "sealbell_http_connections"
    case connectionsRefused = "sealbell_http_connections_refused_total"
    case forwardedUnread = "sealbell_http_forwarded_unread_total"
}

/// Classes of statuses, as a label.
enum StatusClass: String, CaseIterable {
    case informational = "1xx", success = "2xx", redirection = "3xx", clientError = "4xx", serverError = "5xx"
}

/// A face with its counters, so that counting a request is one addition.
final class FaceEntry: Sendable {
    let face: any HTTPFace
    /// One for each status class, in order.
    private let requests: [Counter]
    private let seconds: Timer

    init(_ face: any HTTPFace, listener: ConfiguredName, _ factory: any MetricsFactory) {
        self.face = face
        let labels = [("listener", listener.text), ("face", face.name.text)]
        requests = StatusClass.allCases.map {
            Counter(
                label: IngressMetric.requests.rawValue, dimensions: labels + [("status", $0.rawValue)],
                factory: factory)
        }
        seconds = Timer(label: IngressMetric.seconds.rawValue, dimensions: labels, factory: factory)
    }

    func count(status: Int, after span: Duration) {
        requests[min(max(status / 100, 1), 5) - 1].increment()
        let parts = span.components
        seconds.recordNanoseconds(parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000)
    }
}

/// A listener's own counters.
struct IngressMetrics: Sendable {
    private let refusals: [IngressRefusal: Counter]
    let connections: Meter
    let connectionsRefused: Counter
    let forwardedUnread: Counter

    init(listener: ConfiguredName, _ factory: any MetricsFactory) {
        let label = ("listener", listener.text)
        refusals = Dictionary(
            uniqueKeysWithValues: IngressRefusal.allCases.map {
                (
                    $0,
                    Counter(
                        label: IngressMetric.refusals.rawValue, dimensions: [label, ("reason", $0.rawValue)],
                        factory: factory)
                )
            })
        connections = Meter(label: IngressMetric.connections.rawValue, dimensions: [label], factory: factory)
        connectionsRefused = Counter(
            label: IngressMetric.connectionsRefused.rawValue, dimensions: [label], factory: factory)
        forwardedUnread = Counter(
            label: IngressMetric.forwardedUnread.rawValue, dimensions: [label], factory: factory)
    }

    func count(_ refusal: IngressRefusal) { refusals[refusal]?.increment() }
}
