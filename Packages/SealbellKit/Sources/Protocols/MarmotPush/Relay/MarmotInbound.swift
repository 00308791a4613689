/// A wrap from a Nostr relay: parsed and bounded, not yet verified.
package struct MarmotInbound: Sendable {
    /// Whether the relay sent it as it arrived, or from its store; or from its store to a server that had
    /// been listening until some time ago.
    package enum Arrival: Sendable, Hashable { case live, stored, missed(Duration) }

    package let event: NostrEvent
    /// The index of the configured inbox relay.
    package let relay: Int
    package let arrival: Arrival
    /// How many processes share the relays' events; this wrap belongs to this one.
    package let members: Int

    package init(_ event: NostrEvent, relay: Int, arrival: Arrival = .live, members: Int = 1) {
        self.event = event
        self.relay = relay
        self.arrival = arrival
        self.members = max(1, members)
    }
}
