import Testing
import WakuIngress

@Suite("The Waku link's bounds")
struct WakuLimitsTests {
    @Test("a page has at most 100 messages") func page() { #expect(WakuLimits.pageMessages == 100) }
}
