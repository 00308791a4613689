/// Every bound of a WebSocket connection, with its reason.
package struct WebSocketLimits: Sendable {
    /// One message, all its fragments together: Nostr relays send at most this (fact sheet §5.1).
    package var messageBytes = 256 << 10

    package init() {}
}
