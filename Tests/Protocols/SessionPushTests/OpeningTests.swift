import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Session's device opens pushes")
struct OpeningTests {
    private let now = DevicePhone.now
    private let phone: DevicePhone
    private static let hash = String(repeating: "h", count: 43)
    private static let usual = ##"{"@":"ACCOUNT","#":"\##(hash)","n":0,"t":1,"z":1900000000000,"l":5}"##

    init() throws { phone = try DevicePhone() }

    private func open(_ plain: [UInt8]) throws -> SessionAction {
        try phone.device.open(phone.push(plain), now: now)
    }

    private func message(_ action: SessionAction) -> SessionMessage? {
        switch action {
        case .show(let message), .update(let message), .fetch(let message): message
        case .ignore: nil
        }
    }

    @Test("What people read is shown, the rest is taken in, what is not there is fetched")
    func actions() throws {
        guard case .show = try open(phone.plain(Self.usual, "hello")) else {
            Issue.record("shown")
            return
        }
        let profile = Self.usual.replacing(#""n":0"#, with: #""n":2"#)
        guard case .update = try open(phone.plain(profile, "hello")) else {
            Issue.record("taken in")
            return
        }
        let tooLong = Self.usual.replacing(#""l":5"#, with: #""l":2501,"B":true"#)
        guard case .fetch(let message) = try open(phone.plain(tooLong)) else {
            Issue.record("fetched")
            return
        }
        #expect(message.isTooLong && message.data == nil)
        let gone = tooLong.replacing("1900000000000", with: "1800000000000")
        guard case .ignore(.expired) = try open(phone.plain(gone)) else {
            Issue.record("nothing to fetch")
            return
        }
    }

    @Test(
        "B is true in every spelling of true",
        arguments: [("true", true), ("1", true), ("2", true), ("false", false), ("0", false), ("null", false)]
    )
    func tooLong(spelling: String, isTooLong: Bool) throws {
        let json = Self.usual.replacing(#","l":5"#, with: #","B":\#(spelling)"#)
        #expect(try message(open(phone.plain(json)))?.isTooLong == isTooLong)
    }

    @Test("Padding, none, and further elements make no difference")
    func padding() throws {
        for padding in [0, 1, 255, 256, 1_000] {
            let action = try open(phone.plain(Self.usual, "hello", padding: padding))
            #expect(message(action)?.data.map { $0 == Secret("hello".utf8) } == true)
        }
        var plain = phone.plain(Self.usual, "hello")
        plain.removeLast()
        plain += Array("i7e3:abcld1:ai1eeee".utf8)
        #expect(try message(open(plain))?.data != nil)
    }

    @Test("A message whose length is not the one told is refused, as is every other form")
    func malformed() throws {
        let wrong = [
            phone.plain(Self.usual, "hell"), phone.plain(Self.usual.replacing("5}", with: "-5}"), "hello"),
            phone.plain(Self.usual.replacing(#""n":0"#, with: #""n":32768"#), "hello"),
            phone.plain(Self.usual.replacing(#""n":0"#, with: #""n":"0""#), "hello"),
            phone.plain(Self.usual.replacing(#""n":0"#, with: #""n":0.5"#), "hello"),
            phone.plain(Self.usual.replacing("ACCOUNT", with: "05"), "hello"),
            phone.plain(Self.usual.replacing("ACCOUNT", with: String(repeating: "z", count: 66)), "hello"),
            phone.plain(Self.usual.replacing(Self.hash, with: ""), "hello"),
            phone.plain(Self.usual.replacing(Self.hash, with: String(repeating: "h", count: 256)), "hello"),
            phone.plain(Self.usual.replacing(##""#""##, with: #""h""#), "hello"),
            phone.plain("[]", "hello"), phone.plain("", "hello"), Array("le".utf8), Array("li1ee".utf8),
            Array("l2:{}i5ee".utf8), Array("l2:{}l1:aee".utf8), Array("d1:@1:ae".utf8), [], [0, 0, 0],
            phone.plain(Self.usual, "hello") + [1],
            Array((String(repeating: "l", count: 4_000)).utf8), Array("l99999999999999999999:{}e".utf8)
        ]
        for plain in wrong {
            let text = String(decoding: plain.prefix(40), as: UTF8.self)
            #expect(throws: SessionError(.malformedPush), "\(text)") { try open(plain) }
        }
        let whole = phone.plain(Self.usual, "hello")
        for length in 0..<whole.count {
            #expect(throws: SessionError(.malformedPush), "length \(length)") {
                try open(Array(whole[..<length]))
            }
        }
    }

    @Test("What another key sealed, or somebody changed, does not open")
    func doesNotOpen() throws {
        let other = Secret([UInt8](repeating: 9, count: 32))
        let foreign = try phone.push(phone.plain(Self.usual, "hello"), key: other)
        #expect(throws: SessionError(.doesNotOpen)) { try phone.device.open(foreign, now: now) }
        for text in [
            "", "!!!!", "QUJD", String(repeating: "A", count: 52), String(repeating: "A", count: 70_000)
        ] {
            let push = DeliveredPush(payload: Secret(text.utf8))
            #expect(throws: SessionError(.doesNotOpen)) { try phone.device.open(push, now: now) }
        }
    }

    @Test("A repeat is ignored once the message was remembered, over a restart too")
    func repeats() throws {
        var device = phone.device
        let push = try phone.push(phone.plain(Self.usual, "hello"))
        let opened = try #require(message(device.open(push, now: now)))
        guard case .show = try device.open(push, now: now) else {
            Issue.record("not stored yet")
            return
        }
        device.remember(opened)
        device.remember(opened)
        var restarted = try SessionRoutine(keeping: device.encoded())
        try restarted.watch(WatchedAccount(phone.key))
        for device in [device, restarted] {
            guard case .ignore(.repeated) = try device.open(push, now: now) else {
                Issue.record("a repeat")
                continue
            }
        }
        // The same hash in another namespace is another message.
        let other = Self.usual.replacing(#""n":0"#, with: #""n":-11"#)
        guard case .update = try device.open(phone.push(phone.plain(other, "hello")), now: now) else {
            Issue.record("another message")
            return
        }
    }

    @Test("The memory of repeats is bounded")
    func memory() throws {
        var device = phone.device
        let push = { (number: Int) in
            try phone.push(
                phone.plain(Self.usual.replacing(Self.hash, with: "hash-\(number)"), "hello"))
        }
        for number in 0..<600 {
            device.remember(try #require(message(device.open(push(number), now: now))))
        }
        #expect(device.encoded().count < 40_000)
        guard case .show = try device.open(push(87), now: now) else {
            Issue.record("long forgotten")
            return
        }
        guard case .ignore(.repeated) = try device.open(push(88), now: now) else {
            Issue.record("remembered")
            return
        }
    }

    @Test("A push for an account that is not on this phone is ignored")
    func foreignAccount() throws {
        var device = phone.device
        try device.leave(phone.key.account, now: now)
        let push = try phone.push(phone.plain(Self.usual, "hello"))
        guard case .ignore(.foreignAccount) = try device.open(push, now: now) else {
            Issue.record("of another")
            return
        }
    }

    @Test(
        "What a push service delivers is found in every place it may be in",
        arguments: [
            #"{"aps":{},"spns":1,"enc_payload":"P"}"#, #"{"spns":"1","enc_payload":"P"}"#,
            #"{"spns":99,"enc_payload":"P"}"#, #"{"data":{"spns":"2","enc_payload":"P"}}"#,
            #"{"message":{"token":"x","data":{"spns":"1","enc_payload":"P"}}}"#,
            #""{\"spns\":\"1\",\"enc_payload\":\"P\"}""#,
            #"{"data":"{\"spns\":\"1\",\"enc_payload\":\"P\"}"}"#
        ])
    func delivered(json: String) throws {
        let payload = try phone.push(phone.plain(Self.usual, "hello"))
        let text = try Self.text(of: payload, phone)
        let push = try DeliveredPush(
            delivered: Secret(
                json.replacing("P\"", with: text + "\"").replacing("P\\\"", with: text + "\\\"").utf8))
        guard case .show = try phone.device.open(push, now: now) else {
            Issue.record("shown")
            return
        }
    }

    /// The payload that ``DevicePhone/push(_:key:)`` makes, spelt out.
    private static func text(of push: DeliveredPush, _ phone: DevicePhone) throws -> String {
        let nonce = [UInt8](repeating: 7, count: 24)
        let sealed = try XChaCha20Poly1305.seal(
            Secret(phone.plain(usual, "hello")), with: [], key: phone.device.encKey, nonce: nonce)
        return Base64.text(nonce + sealed)
    }

    @Test(
        "What is not of this protocol says so",
        arguments: [
            "", "{}", "[]", "7", "null", #""x""#, #"{"spns":1}"#, #"{"enc_payload":"AAAA"}"#,
            #"{"spns":null,"enc_payload":"AAAA"}"#, #"{"spns":1,"enc_payload":7}"#,
            #"{"ENCRYPTED_DATA":"AAAA"}"#,
            #"{"data":{"data":{"data":{"data":{"spns":1,"enc_payload":"A"}}}}}"#
        ])
    func foreign(json: String) throws {
        #expect(throws: SessionError(.foreignPush)) { try DeliveredPush(delivered: Secret(json.utf8)) }
        let padded = json + String(repeating: " ", count: 70_000)
        #expect(throws: SessionError(.foreignPush)) { try DeliveredPush(delivered: Secret(padded.utf8)) }
    }
}
