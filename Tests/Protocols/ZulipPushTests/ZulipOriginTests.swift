import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What an origin sends, and how it reads what comes back (docs/conformance/zulip.md).
@Suite("Zulip origin")
struct ZulipOriginTests {
    private static let realm = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
    private static let id = "1c29d774-2414-40cc-a7d1-4fb445cf9726"
    private static let key = String(repeating: "k", count: 64)

    private let origin = ZulipOrigin(
        id: ZulipOriginTests.id, key: Secret(ZulipOriginTests.key.utf8), version: "12.0")

    private func field(_ call: HTTPCall, _ name: String) -> String? {
        call.headers.first { $0.name == name }?.value.reveal { String(decoding: $0, as: UTF8.self) }
    }

    private func form(_ call: HTTPCall) throws -> Form { try Form.parse(call.body.reveal { Array($0) }) }

    private func pushKey(_ byte: UInt8) throws -> PushKey {
        try PushKey(base64: Secret(Base64.encode([0x31] + [UInt8](repeating: byte, count: 32))))
    }

    private static func notification(_ body: ZulipNotification.Body) -> ZulipNotification {
        ZulipNotification(realmURL: "https://chat.example.org", realmName: nil, userID: 7, body: body)
    }

    @Test("An invented origin has an id of version 4 and a key of 64 characters, both new each time")
    func invented() throws {
        var random = SeededRandom(seed: 1)
        let (first, key) = ZulipOrigin.invent(version: "12.0", using: &random)
        let (second, other) = ZulipOrigin.invent(version: "12.0", using: &random)
        #expect(try #require(UUIDText(first.id)).isVersion4)
        #expect(key.count == 64 && other.count == 64)
        #expect(first.id != second.id && !(key == other))
    }

    @Test("Each call has the method, path, type and credentials of its clause")
    func calls() throws {
        let signUp = origin.signUp(hostname: "chat.example.org", mail: "a@example.org")
        #expect(signUp.method == "POST" && signUp.url == "/api/v1/remotes/server/register")
        #expect(field(signUp, "Authorization") == nil)
        #expect(field(signUp, "User-agent") == "ZulipServer/12.0")
        #expect(field(signUp, "Content-type") == "application/x-www-form-urlencoded")
        #expect(
            try form(signUp).fields.map(\.name)
                == ["zulip_org_id", "zulip_org_key", "hostname", "contact_email"])
        let rotation = origin.signUp(hostname: "h", mail: "m", newKey: Secret("n".utf8))
        #expect(try form(rotation).text("new_org_key") == "n")

        let status = origin.analyticsStatus()
        #expect(status.method == "GET" && status.url == "/api/v1/remotes/server/analytics/status")
        #expect(status.body.count == 0 && field(status, "Content-type") == nil)
        let placed = ZulipOrigin(
            id: origin.id, key: Secret("k".utf8), version: "12.0", relay: "https://push.example.org")
        let whole = placed.analyticsStatus()
        #expect(whole.url == "https://push.example.org/api/v1/remotes/server/analytics/status")
        #expect(whole.answerLimitBytes == ZulipOriginLimits.answerBytes)
        let deactivate = origin.deactivate()
        #expect(deactivate.url == "/api/v1/remotes/server/deactivate")
        #expect(field(deactivate, "Content-type") == "application/json")
        let report = ZulipRealmReport(
            id: 1, uuid: Self.realm, ownerSecret: "s", host: "h", url: "u", name: "n \"é\"", createdAt: 5)
        let analytics = origin.analytics(realms: [report])
        #expect(analytics.method == "POST" && analytics.url == "/api/v1/remotes/server/analytics")
        let realms = try JSONValue.parse(try #require(try form(analytics)["realms"]))
        #expect(realms[0]?["uuid"]?.string == Self.realm && realms[0]?["name"]?.string == "n \"é\"")
        for call in [status, deactivate, analytics] {
            let pair = Base64.text(Array("\(Self.id):\(Self.key)".utf8))
            #expect(field(call, "Authorization") == "Basic " + pair)
        }
    }

    @Test("A notification goes to every device in calls of a thousand, each under its key and a new nonce")
    func batches() throws {
        var random = SeededRandom(seed: 3)
        let keys = try (0..<5).map { try pushKey(UInt8($0)) }
        let targets = (0..<2_500).map { number in
            ZulipTarget(
                kind: number.isMultiple(of: 2) ? .apns : .fcm, tokenID: TokenID(UInt64(number)),
                pushKeyID: UInt32(number), key: keys[number % 5])
        }
        let calls = try origin.notify(
            Self.notification(.test(time: 9)), to: targets, realm: Self.realm, using: &random)
        var nonces: Set<[UInt8]> = []
        var number = 0
        for (call, count) in zip(calls, [1_000, 1_000, 500]) {
            #expect(call.url == "/api/v1/remotes/push/e2ee/notify" && call.method == "POST")
            #expect(field(call, "Content-type") == "application/json")
            // The relay's own reader takes it.
            let request = try call.body.reveal { (bytes) throws(ZulipError) in
                try NotifyRequest(parsing: bytes)
            }
            #expect(request.realm.text == Self.realm && request.items.count == count)
            for item in request.items {
                #expect(item.tokenID == TokenID(UInt64(number)))
                let data = item.payload.reveal { Array($0[item.ciphertext]) }
                nonces.insert(Array(try Base64.decode(data)[..<24]))
                if number < 10 { _ = try ContentBox.open(Secret(data), with: keys[number % 5]) }
                number += 1
            }
        }
        #expect(calls.count == 3 && number == 2_500 && nonces.count == 2_500)
        let none = try origin.notify(Self.notification(.test(time: 9)), to: [], realm: "", using: &random)
        #expect(none.isEmpty)
    }

    @Test("A message is an alert of high priority, a removal works in the background")
    func priorities() throws {
        var random = SeededRandom(seed: 4)
        let targets = try [TokenKind.apns, .fcm].map {
            ZulipTarget(kind: $0, tokenID: TokenID(1), pushKeyID: 1, key: try pushKey(1))
        }
        func items(_ body: ZulipNotification.Body) throws -> [NotifyItem.Target] {
            let calls = try origin.notify(
                Self.notification(body), to: targets, realm: Self.realm, using: &random)
            return try calls[0].body.reveal { (bytes) throws(ZulipError) in
                try NotifyRequest(parsing: bytes).items.map(\.target)
            }
        }
        #expect(try items(.test(time: 1)) == [.apns(priority: 10, .alert), .fcm(.high)])
        #expect(try items(.remove([1])) == [.apns(priority: 5, .background), .fcm(.normal)])
    }

    @Test("What no push service takes is refused before anything is sealed")
    func tooMuch() throws {
        var random = SeededRandom(seed: 5)
        let target = ZulipTarget(kind: .apns, tokenID: TokenID(1), pushKeyID: 1, key: try pushKey(1))
        func send(_ nameBytes: Int) throws -> [HTTPCall] {
            let message = ZulipMessage(
                id: 1, time: 1, content: "", senderID: 1,
                senderName: String(repeating: "n", count: nameBytes), senderAvatarURL: "",
                recipient: .direct(userIDs: [1]))
            return try origin.notify(
                Self.notification(.message(message)), to: [target], realm: Self.realm, using: &random)
        }
        var largest = 0
        for bytes in stride(from: 2_000, to: 4_000, by: 7) {
            // Whether it is taken is the question; what is taken must fit the push service.
            guard let calls = try? send(bytes) else { break }
            largest = bytes
            let items = try calls[0].body.reveal { (body) throws(ZulipError) in
                try NotifyRequest(parsing: body).items
            }
            #expect(items[0].payload.count <= 4_096)
        }
        #expect(largest > 2_500)
        #expect(throws: ZulipError(.tooMuchContent)) { try send(largest + 7) }
        // A removal names at most the 200 newest, so it always fits.
        let many = Self.notification(.remove((0..<10_000).map { Int64($0) }))
        #expect(try origin.notify(many, to: [target], realm: Self.realm, using: &random).count == 1)
    }

    @Test("The relay's answer to a notification reads back, and is refused when cut at any length")
    func answer() throws {
        var counts = NotifyCounts()
        counts.apple = 2
        counts.android = 1
        counts.dead = [TokenID(1), TokenID(.max)]
        let bytes = ZulipReply.notified(counts).body()
        let answer = try ZulipOrigin.notifyAnswer(Secret(bytes))
        #expect(answer.apple == 2 && answer.android == 1 && answer.canPush)
        #expect(answer.deadTokenIDs == [TokenID(1), TokenID(.max)])
        for length in 0..<bytes.count {
            #expect(throws: ZulipError(.malformedAnswer), "length \(length)") {
                try ZulipOrigin.notifyAnswer(Secret(bytes[..<length]))
            }
        }
        let wrong =
            #"{"result":"success","apple_successfully_sent_count":0,"#
            + #""android_successfully_sent_count":0,"delete_token_ids":["x"]}"#
        #expect(throws: ZulipError(.malformedAnswer)) { try ZulipOrigin.notifyAnswer(Secret(wrong.utf8)) }
        #expect(throws: ZulipError(.malformedAnswer)) {
            try ZulipOrigin.notifyAnswer(Secret(ZulipErrorAnswer(ZulipError(.unknownRealm)).body))
        }
    }
}
