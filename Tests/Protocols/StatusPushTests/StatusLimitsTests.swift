import StatusPush
import Testing

@Suite("Status's bounds")
struct StatusLimitsTests {
    @Test("a hash has 64 bytes") func hash() { #expect(StatusLimits.hashBytes == 64) }
}
