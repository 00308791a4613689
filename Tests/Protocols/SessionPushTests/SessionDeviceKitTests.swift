import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// The device as an app has it: token and accounts in, calls out, pushes opened.
@Suite("Session device in an app", .timeLimit(.minutes(30)))
struct SessionDeviceKitTests {
    private static let day = Duration.seconds(86_400)
    private static let world = ManualClock(start: DevicePhone.now).world(seed: 5)
    private static let onionKey = X25519KeyPair.generate(world)

    private static func relayKey() throws -> RelayKey { try RelayKey(text: Hex.encode(onionKey.publicKey)) }

    private static func node(_ number: Int) throws -> OnionNode {
        let key = Secret(onionKey.publicKey)
        return try OnionNode(address: "https://192.0.2.\(number):22021", ed25519: key, x25519: key)
    }

    /// What the server answers to an onion that reached it.
    private func reply(_ text: String, to call: Call) throws -> CallAnswer {
        let body = try #require(call.http?.body)
        let opened = try body.reveal { (body) throws(SessionError) in
            try SessionOnion.open(body, key: Self.onionKey)
        }
        let sealed = withBytes(Array(text.utf8)) {
            opened.reply.seal(code: 200, contentType: "application/json", body: $0, Self.world)
        }
        return .http(status: 200, body: sealed)
    }

    // MARK: calls

    @Test("From nothing to a push opened, in the clear: one call, and the next within a week")
    func life() throws {
        var phone = try SessionKitPhone()
        #expect(phone.isIdle() && phone.device.nextDue == nil)
        #expect(phone.device.status(at: phone.now).advice == .giveToken)
        try phone.tell()
        #expect(phone.device.nextDue == .distantPast)
        let call = try phone.due()
        #expect(call.http?.method == "POST" && call.url == "https://push.example.org:443/subscribe")
        #expect(call.text.contains(SessionKitPhone.token) && !call.isStanding)
        #expect(phone.isIdle() && phone.device.nextDue == phone.now + .seconds(300))
        let pending = phone.device.status(at: phone.now)
        #expect(pending.state == .pending && pending.isQuiet && pending.advice == .wait)
        // A clock that was set back does not silence it for as long.
        #expect(!phone.device.status(at: phone.now - Self.day).isQuiet)
        phone.answer(200, SessionKitPhone.added, to: call)
        let status = phone.device.status(at: phone.now)
        #expect(status.state == .active && status.since == phone.now && status.advice == .none)
        #expect(phone.device.status(of: phone.key.account, at: phone.now) == status)
        let next = try #require(phone.device.nextDue)
        #expect(next >= phone.now + .seconds(12 * 3_600) && next <= phone.now + Self.day * 7)
        // In the extension: no key of an account.
        let extended = try SessionDevice(phone.server, keeping: phone.device.kept)
        guard case .show(let message) = try extended.open(phone.push(), at: phone.now) else {
            Issue.record("shown")
            return
        }
        #expect(message.account == phone.key.account && message.data?.count == 5)
        #expect("\(extended)" == "‹device›")
    }

    @Test("An onion goes to the first node of a path, or to the server; its reply counts, and no other")
    func onions() throws {
        var phone = try SessionKitPhone(Self.relayKey())
        try phone.tell()
        let direct = try phone.due()
        #expect(direct.url == "https://push.example.org:443/oxen/v4/lsrpc")
        let right = try reply(SessionKitPhone.added, to: direct)
        // What nobody has sealed, somebody's status, and the reply to another onion.
        var other = try SessionKitPhone(Self.relayKey(), seed: 42)
        try other.tell()
        let foreign = try reply(SessionKitPhone.added, to: try other.due())
        let clear = CallAnswer.http(status: 200, body: Secret(SessionKitPhone.added.utf8))
        for wrong in [foreign, clear, .http(status: 404, body: Secret([])), .none] {
            var tried = phone
            tried.device.answered(wrong, to: direct, at: phone.now, using: &tried.random)
            #expect(tried.device.status(at: phone.now).advice == .retrying)
        }
        phone.device.answered(right, to: direct, at: phone.now, using: &phone.random)
        #expect(phone.device.status(at: phone.now).state == .active)
        phone.device.path = try (1...3).map { try Self.node($0) }
        phone.now = phone.now + Self.day * 7
        #expect(try phone.due().url == "https://192.0.2.1:22021/onion_req/v2")
    }

    @Test("A path that nothing can be sealed to sends nothing past it, and is said")
    func badPath() throws {
        var phone = try SessionKitPhone(Self.relayKey())
        try phone.tell()
        let zero = Secret([UInt8](repeating: 0, count: 32))
        phone.device.path = [try OnionNode(address: "https://192.0.2.1", ed25519: zero, x25519: zero)]
        #expect(phone.device.due(at: phone.now, using: &phone.random).isEmpty)
        let status = phone.device.status(at: phone.now)
        #expect(status.state == .pending && status.detail == "malformedKey" && status.advice == .retrying)
        phone.now = try #require(phone.device.nextDue)
        phone.device.path = [try Self.node(1)]
        #expect(try phone.due().url.hasPrefix("https://192.0.2.1:22021/"))
        for address in ["", "http://192.0.2.1", "https://", "https://a/b", "https://a b", "https://u@a"] {
            #expect(throws: DeviceError(.malformedSetup)) {
                try OnionNode(address: address, ed25519: zero, x25519: zero)
            }
        }
        #expect(throws: DeviceError(.malformedKey)) {
            try OnionNode(address: "https://a", ed25519: zero, x25519: Secret([1]))
        }
    }

    @Test("An answer that comes twice, late, or to a call of another run changes nothing")
    func lateAnswers() throws {
        var phone = try SessionKitPhone.subscribed()
        let before = phone.device.kept
        phone.now = phone.now + Self.day * 7
        let lost = try phone.due()
        // Five minutes later it counts as lost.
        phone.now = phone.now + .seconds(300)
        let again = try phone.due()
        let kept = phone.device.kept
        phone.answer(403, to: lost)
        #expect(phone.device.kept == kept)
        phone.answer(200, SessionKitPhone.added, to: again)
        let after = phone.device.kept
        for status in [200, 403] { phone.answer(status, SessionKitPhone.removed, to: again) }
        #expect(phone.device.kept == after && !(after == before))
        // Two calls are under way, and the app ends: both are made again, and old answers are nobody's.
        try phone.device.watch(
            WatchedAccount(SessionAccountKey(.generate(using: &phone.random), .group)))
        let first = try phone.due()
        try phone.device.leave(phone.key.account, at: phone.now)
        let second = try phone.due()
        try phone.restart()
        let state = phone.device.kept
        phone.answer(200, SessionKitPhone.added, to: first)
        phone.answer(200, SessionKitPhone.removed, to: second)
        #expect(phone.device.kept == state)
        #expect(!phone.isIdle())
    }

    @Test("Without network it tries again, later each time, up to an hour; a kind that is no answer is none")
    func offline() throws {
        var phone = try SessionKitPhone()
        try phone.tell()
        for round in 0..<12 {
            let call = try phone.due()
            if round == 3 {
                phone.device.answered(.taken, to: call, at: phone.now, using: &phone.random)
            } else {
                phone.answer(round == 5 ? 503 : nil, to: call)
            }
            let next = try #require(phone.device.nextDue)
            let whole = min(Duration.seconds(3_600), .seconds(15 << round))
            #expect(next.since(phone.now) <= whole && next.since(phone.now) >= whole * 3 / 4)
            #expect(phone.isIdle())
            try phone.restart()
            phone.now = next
        }
        let status = phone.device.status(at: phone.now)
        #expect(status.state == .pending && status.advice == .retrying && !status.isQuiet)
    }

    @Test("A refusal is said with its number, and tried again half a day later")
    func refused() throws {
        for (status, body, detail) in [
            (401, "", "HTTP_401"), (404, "", "HTTP_404"), (200, #"{"error":4}"#, "ERROR_4"),
            (200, #"{"error":-9223372036854775808}"#, "ERROR_9223372036854775808")
        ] {
            var phone = try SessionKitPhone()
            try phone.tell()
            phone.answer(status, body, to: try phone.due())
            for said in [
                phone.device.status(at: phone.now),
                phone.device.status(of: phone.key.account, at: phone.now)
            ] {
                #expect(said.state == .failed && said.detail == detail && said.advice == .tellAdmin)
            }
            #expect(phone.device.nextDue == phone.now + .seconds(12 * 3_600))
            phone.now = phone.now + .seconds(12 * 3_600)
            phone.answer(200, SessionKitPhone.added, to: try phone.due())
            #expect(phone.device.status(at: phone.now).detail == nil)
        }
    }

    @Test("An app that was not started for 14 days is subscribed nowhere, and says so")
    func forgotten() throws {
        var phone = try SessionKitPhone.subscribed()
        let extended = try SessionDevice(phone.server, keeping: phone.device.kept)
        #expect(extended.status(at: phone.now + Self.day * 13).state == .active)
        #expect(extended.status(at: phone.now + Self.day * 14).state == .none)
        phone.now = phone.now + Self.day * 14
        try phone.restart()
        phone.answer(200, SessionKitPhone.added, to: try phone.due())
        #expect(phone.device.status(at: phone.now).state == .active)
    }

    @Test("Another token or server is told at once, and what is unchanged is not")
    func changes() throws {
        var phone = try SessionKitPhone.subscribed()
        try phone.restart()
        #expect(phone.isIdle())
        var moved = phone
        try moved.restart(SessionServer(host: "other.example", key: nil))
        #expect(moved.device.status(at: phone.now).state == .pending)
        #expect(try moved.due().url == "https://other.example:443/subscribe")
        var keyed = phone
        try keyed.restart(SessionServer(host: "push.example.org", key: Self.relayKey()))
        #expect(try keyed.due().url.hasSuffix("/oxen/v4/lsrpc"))
        try phone.tell(String(repeating: "b6", count: 32))
        let calls = phone.device.due(at: phone.now, using: &phone.random)
        #expect(calls.map(\.url).map { $0.suffix(9) } == ["subscribe", "subscribe"])
        #expect(
            calls.contains { $0.url.hasSuffix("/unsubscribe") && $0.text.contains(SessionKitPhone.token) })
        // The new subscription stands, whatever becomes of the one before.
        for call in calls {
            let isEnd = call.url.hasSuffix("/unsubscribe")
            phone.answer(200, isEnd ? #"{"error":4}"# : SessionKitPhone.added, to: call)
        }
        for status in [
            phone.device.status(at: phone.now), phone.device.status(of: phone.key.account, at: phone.now)
        ] {
            #expect(status.state == .active && status.advice == .none && status.detail == nil)
        }
    }

    // MARK: leaving

    @Test("A logout takes every account back, over a restart too, and then it is gone")
    func logout() throws {
        var phone = try SessionKitPhone.subscribed()
        let push = try phone.push()
        try phone.device.use(token: nil)
        #expect(!phone.device.isGone && phone.device.nextDue == .distantPast)
        guard case .ignore(.switchedOff) = try phone.device.open(push, at: phone.now) else {
            Issue.record("ignored")
            return
        }
        let lost = try phone.due()
        #expect(lost.url.hasSuffix("/unsubscribe") && phone.isIdle())
        try phone.restart(leaves: true)
        let call = try phone.due()
        #expect(call.text == lost.text, "it is signed once")
        phone.answer(nil, to: call)
        #expect(!phone.device.isGone && phone.device.status(at: phone.now).state == .pending)
        phone.now = try #require(phone.device.nextDue)
        phone.answer(200, SessionKitPhone.removed, to: try phone.due())
        #expect(phone.device.isGone && phone.isIdle() && phone.device.nextDue == nil)
        guard case .ignore(.switchedOff) = try phone.device.open(push, at: phone.now) else {
            Issue.record("a late push is for this phone still, and shown to nobody")
            return
        }
        try phone.restart(leaves: true)
        #expect(phone.device.isGone)
        // And back.
        try phone.tell()
        phone.answer(200, SessionKitPhone.added, to: try phone.due())
        #expect(phone.device.status(at: phone.now).state == .active)
    }

    @Test("An account whose key is gone is over when its subscription is; nothing told is gone at once")
    func keyless() throws {
        var fresh = try SessionKitPhone()
        try fresh.tell()
        try fresh.device.use(token: nil)
        #expect(fresh.isIdle() && fresh.device.isGone)
        var phone = try SessionKitPhone.subscribed()
        try phone.restart(leaves: true)
        #expect(phone.isIdle() && !phone.device.isGone)
        phone.now = try #require(phone.device.nextDue)
        #expect(phone.now <= DevicePhone.now + Self.day * 21)
        #expect(phone.device.due(at: phone.now, using: &phone.random).isEmpty && phone.device.isGone)
        // A server that is away for a day: the signature no longer holds.
        var away = try SessionKitPhone.subscribed()
        try away.device.use(token: nil)
        away.answer(nil, to: try away.due())
        away.now = away.now + .seconds(23 * 3_600)
        #expect(away.device.due(at: away.now, using: &away.random).isEmpty && away.device.isGone)
    }

    // MARK: receiving

    @Test("What opens is shown, taken in, fetched or ignored; what does not says why")
    func opens() throws {
        var phone = try SessionKitPhone.subscribed()
        func kind(_ delivered: Delivered) throws -> String {
            switch try phone.device.open(delivered, at: phone.now) {
            case .show: "show"
            case .update: "update"
            case .fetch: "fetch"
            case .remove: "remove"
            case .ignore(let reason): reason.rawValue
            }
        }
        let push = try phone.push()
        #expect(try kind(push) == "show")
        #expect(try kind(phone.push(namespace: 2)) == "update")
        #expect(try kind(phone.push(nil)) == "fetch")
        let message = try #require(try phone.device.open(push, at: phone.now).content)
        phone.device.stored(message)
        phone.device.stored(message)
        #expect(try kind(push) == "repeated")
        try phone.restart()
        #expect(try kind(push) == "repeated")
        phone.now = UnixTime(milliseconds: 1_900_000_000_000)
        #expect(try kind(phone.push(nil, hash: "late")) == "expired")
        // Another phone's key, another account, and no push of this protocol.
        var other = try SessionKitPhone(seed: 43)
        #expect(throws: DeviceError(.doesNotOpen)) { try other.device.open(push, at: phone.now) }
        #expect(throws: DeviceError(.foreign)) { try other.device.open(other.push(), at: phone.now) }
        try other.tell()
        #expect(try other.device.open(other.push(hash: "new"), at: phone.now).content?.hash == "new")
        for data in [[:], ["spns": "1"], ["enc_payload": "AAAA"], ["subject": "x"]] {
            #expect(throws: DeviceError(.foreign)) {
                try phone.device.open(Delivered(data: data), at: phone.now)
            }
        }
        let inside = try Delivered(userInfo: ["aps": [String: Any](), "spns": 1, "enc_payload": "AAAA"])
        #expect(throws: DeviceError(.doesNotOpen)) { try phone.device.open(inside, at: phone.now) }
    }

    @Test("Tokens and servers that cannot be are refused, and change nothing")
    func refusedSetups() throws {
        var phone = try SessionKitPhone.subscribed()
        let before = phone.device.kept
        let short = try DeviceToken.fcm("short")
        let odd = try DeviceToken.apns(bytes: [1, 2, 3])
        for token in [short, odd] {
            #expect(throws: DeviceError(.malformedToken)) { try phone.device.use(token: token) }
        }
        #expect(phone.device.kept == before && phone.isIdle())
        try phone.device.use(token: .apns(hex: SessionKitPhone.token, .development))
        let calls = phone.device.due(at: phone.now, using: &phone.random)
        #expect(calls.contains { $0.text.contains("apns-sandbox") })
        let zero = try RelayKey(text: String(repeating: "0", count: 64))
        #expect(throws: DeviceError(.malformedKey)) { try SessionServer(host: "a.example", key: zero) }
        for host in ["", "a/b", "a b", "u@a", String(repeating: "a", count: 254)] {
            #expect(throws: DeviceError(.malformedSetup)) { try SessionServer(host: host, key: nil) }
        }
        #expect(throws: DeviceError(.malformedSetup)) { try SessionServer(host: "a", port: 0, key: nil) }
    }
}
