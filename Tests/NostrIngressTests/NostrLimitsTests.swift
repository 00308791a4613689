import NostrIngress
import Testing

@Suite("Nostr limits") struct NostrLimitsTests {
    @Test("an instance may have several inbox relays, and not any number")
    func relays() { #expect((2...64).contains(NostrLimits().relays)) }
}
