public import MarmotPush

/// Phones were not woken: no relay of their server is known, or none accepted the trigger. It is thrown so
/// that it is not overlooked; everything that could be published was published.
///
/// The message itself must not fail because of it: the others see it when they open the app.
public struct Unreached: Error, Sendable {
    /// Servers that were not reached, one at least.
    public let servers: [WakeReport]
    /// Those that were.
    public let reached: [WakeReport]
}
