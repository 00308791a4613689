import PushModel
import Testing
import WireFormats

@testable import ZulipPush

/// The answer to a notify call, of which the usual one is made of pieces.
@Suite("The reply to a notification")
struct NotifyReplyTests {
    private static let counts = [(0, 0), (1, 0), (0, 9), (10, 1), (999, 1_000)]

    @Test("Whoever is named, it has the members that servers ask for", arguments: [false, true])
    func members(_ isNumbered: Bool) throws {
        for (apple, android) in Self.counts {
            var counts = isNumbered ? NotifyCounts(of: .number(7)) : NotifyCounts(of: .token(TokenID(7)))
            (counts.apple, counts.android) = (apple, android)
            for dead in [false, true] {
                if dead { counts.add(dead: isNumbered ? .number(7) : .token(TokenID(7))) }
                let body = try JSONValue.parse(ZulipReply.notified(counts).body())
                let list = isNumbered ? "delete_device_ids" : "delete_token_ids"
                #expect(
                    body.object?.names == [
                        "result", "msg", "apple_successfully_sent_count", "android_successfully_sent_count",
                        list, "realm_push_status"
                    ])
                #expect(body["result"]?.string == "success" && body["msg"]?.string == "")
                #expect(body["apple_successfully_sent_count"]?.int64 == Int64(apple))
                #expect(body["android_successfully_sent_count"]?.int64 == Int64(android))
                #expect(body[list]?.array?.count == (dead ? 1 : 0))
                #expect(body["realm_push_status"]?["can_push"]?.bool == true)
                #expect(body["realm_push_status"]?["expected_end_timestamp"] == .null)
            }
        }
    }
}
