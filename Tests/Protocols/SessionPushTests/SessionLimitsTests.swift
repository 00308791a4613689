import SessionPush
import Testing

@Suite("Session's bounds")
struct SessionLimitsTests {
    @Test("an account id has a prefix and a key") func account() { #expect(SessionLimits.accountBytes == 33) }
}
