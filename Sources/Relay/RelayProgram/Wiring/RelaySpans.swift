import HTTP2Client
import HTTPIngress

/// The deadlines of what stands around the delivery core. A relay has them as they are; tests that are of no
/// deadline are given minutes, since a machine that stands still for ten seconds is no fault of a peer's.
struct RelaySpans: Sendable {
    var ingress = IngressLimits()
    var pushServices = HTTP2Options()
    /// How often an operator's alerts are looked at, and what is waited for first.
    var watch = WatchLimits()
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
