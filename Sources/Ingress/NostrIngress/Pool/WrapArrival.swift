package import MarmotPush

/// An event that a relay handed out. Nothing in it has been verified yet.
package struct WrapArrival: Sendable {
    package let event: NostrEvent
    package let source: EventSource
    /// The relay's share.
    package let relay: Int
    /// Bytes of memory that it takes, or somewhat more: its texts, and what holds them. Asked at both ends of
    /// the queue, and again by the one that waits for room.
    package let size: Int

    package init(event: NostrEvent, source: EventSource, relay: Int) {
        self.event = event
        self.source = source
        self.relay = relay
        size = Self.size(event)
    }

    private static func size(_ event: NostrEvent) -> Int {
        var bytes = 512 + event.content.count
        for tag in event.tags {
            bytes += 64
            for value in tag { bytes += 32 + value.utf8.count }
        }
        return bytes
    }
}
