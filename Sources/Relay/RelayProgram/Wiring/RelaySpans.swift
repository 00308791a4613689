import HTTP2Client
import HTTPIngress

/// The deadlines of the parts around the delivery core. A relay uses them as they are; tests that are not
/// about deadlines get minutes, because a machine that stalls for ten seconds is not a peer's fault.
struct RelaySpans: Sendable {
    var ingress = IngressLimits()
    var pushServices = HTTP2Options()
    /// How often an operator's alerts are looked at, and what is waited for first.
    var watch = MonitorLimits()
    private var ofProtocols: [ObjectIdentifier: any Sendable] = [:]

    /// A protocol's own deadlines.
    subscript<Key: SpanKey>(_: Key.Type) -> Key.Value {
        get { ofProtocols[ObjectIdentifier(Key.self)] as? Key.Value ?? Key.standard }
        set { ofProtocols[ObjectIdentifier(Key.self)] = newValue }
    }
}

/// Names deadlines of one protocol within ``RelaySpans``.
protocol SpanKey {
    associatedtype Value: Sendable
    static var standard: Value { get }
}
