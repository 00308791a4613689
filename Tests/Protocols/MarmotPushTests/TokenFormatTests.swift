import MarmotPush
import Testing

@Suite("Token formats") struct TokenFormatTests {
    @Test("each format is found by its name and no other name is one")
    func names() {
        #expect(TokenFormat(rawValue: "push-v1") == .pushV1)
        #expect(TokenFormat(rawValue: "mip05-v1") == nil)
    }
}
