/// A wrap that a Nostr relay handed over: parsed and bounded, not yet believed.
package struct MarmotInbound: Sendable {
    /// Whether the relay sent it as it came, or out of its store; or out of its store to a server that had
    /// been listening until so long ago.
    package enum Arrival: Sendable, Hashable { case live, stored, missed(Duration) }

    package let event: NostrEvent
    /// Which of the configured inbox relays, in their order.
    package let relay: Int
    package let arrival: Arrival
    /// How many processes share what the relays say; this one has this wrap's share.
    package let members: Int

    package init(_ event: NostrEvent, relay: Int, arrival: Arrival = .live, members: Int = 1) {
        self.event = event
        self.relay = relay
        self.arrival = arrival
        self.members = max(1, members)
    }
}
