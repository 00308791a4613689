import SwarmIngress
import Testing

@Suite("The swarm link's bounds")
struct SwarmLimitsTests {
    @Test("a message may have ten MiB") func message() { #expect(SwarmLimits.messageBytes == 10_485_760) }
}
