import NextcloudPush
import PushModel
import Testing
import WireFormats

@Suite("What a Nextcloud relay says around its role")
struct NextcloudConversationTests {
    private static let key = Secret("a subscription key".utf8)
    private static let other = Secret("another one".utf8)
    private let open = NextcloudConversation(NextcloudPolicy())
    private let closed = NextcloudConversation(NextcloudPolicy(subscriptionKeys: [key]))

    private func code(_ body: () throws(NextcloudError) -> Void) -> NextcloudError.Code? {
        do throws(NextcloudError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("By the head, servers need a key where an instance has some, and devices never do")
    func head() {
        let rows: [(key: Secret?, method: String, path: String, code: NextcloudError.Code?)] = [
            (nil, "POST", "/notifications", .wrongSubscriptionKey),
            (Self.other, "POST", "/notifications", .wrongSubscriptionKey),
            (Self.key, "POST", "/notifications", nil), (nil, "POST", "/devices", nil),
            (nil, "POST", "/app/notifications", .wrongSubscriptionKey),
            // Path and method come first.
            (nil, "GET", "/notifications", .wrongMethod), (nil, "POST", "/a/b/notifications", .unknownPath)
        ]
        for row in rows {
            let found = code { () throws(NextcloudError) in
                try closed.check(method: row.method, path: row.path, subscriptionKey: row.key)
            }
            #expect(found == row.code, "\(row.method) \(row.path)")
        }
        #expect(
            code { () throws(NextcloudError) in
                try open.check(method: "POST", path: "/notifications", subscriptionKey: nil)
            } == nil)
    }

    @Test("Nothing is read of a server without a key")
    func reading() throws {
        func read(_ conversation: NextcloudConversation, _ key: Secret?) -> NextcloudError.Code? {
            code { () throws(NextcloudError) in
                _ = try withBytes(Array("{".utf8)) { (body) throws(NextcloudError) in
                    try conversation.read(
                        method: "POST", path: "/notifications", query: nil, contentType: "application/json",
                        userAgent: nil, subscriptionKey: key, from: ClientKey(7), body: body)
                }
            }
        }
        #expect(read(closed, nil) == .wrongSubscriptionKey)
        #expect(read(closed, Self.key) == .malformedJSON && read(open, nil) == .malformedJSON)
    }

    @Test("A server reads a refusal as a sentence, wherever it asks")
    func wording() {
        for path in ["/notifications", "/main/notifications", "/main/app/notifications"] {
            #expect(NextcloudConversation.isPush(path))
        }
        for path in ["/devices", "/notifications/", "notifications", "/x-notifications"] {
            #expect(!NextcloudConversation.isPush(path))
        }
    }
}
