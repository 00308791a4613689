import Testing
import WebSocket

@Suite("WebSocket limits") struct WebSocketLimitsTests {
    @Test("a message holds what a relay may send")
    func messages() { #expect(WebSocketLimits().messageBytes >= 262_144) }
}
