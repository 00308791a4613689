/// Every bound of a WebSocket connection, with its reason.
package struct WebSocketLimits: Sendable {
    /// One message, all its fragments together, both ways: Nostr relays send at most this
    /// (docs/conformance/marmot.md).
    package var messageBytes = 256 << 10
    /// Fragments of one message: enough for 256-byte pieces, and empty pieces cannot go on for ever.
    package var fragments = 1024
    /// The head of the answer to the upgrade: relays send some 300 bytes, those behind a large proxy 2 KiB.
    package var headBytes = 16 << 10
    /// Messages read ahead of the reader: when so much waits, the socket is not read any more. One message of
    /// the full size fits, and what one reading of the socket held may come on top.
    package var readAheadBytes = 256 << 10
    /// The same as a count, for messages cost memory of their own.
    package var readAheadMessages = 512
    /// Senders that wait for a slow peer: more are refused.
    package var waitingWriters = 64
    /// The bytes that these hold.
    package var waitingWriteBytes = 1 << 20
    /// A sender waits for the socket so long.
    package var writeDeadline: Duration = .seconds(10)
    /// From the look-up of the name to the end of the upgrade.
    package var connectDeadline: Duration = .seconds(10)
    /// The same through a proxy: an onion service's circuit alone may take half a minute.
    package var proxiedConnectDeadline: Duration = .seconds(60)
    /// So long without a frame, and the peer is asked by PING (docs/conformance/marmot.md: every 30 to 60 s).
    package var pingAfterSilence: Duration = .seconds(30)
    /// So long without a frame after the PING, and the connection is dead.
    package var pongDeadline: Duration = .seconds(20)
    /// PINGs of callers under way at once.
    package var pings = 8
    /// How long a connection waits for the other side's farewell.
    package var closeDeadline: Duration = .seconds(2)

    package init() {}
}
