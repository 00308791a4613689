import PushModel
import SealbellKit
import Testing

@Suite("Device tokens and keys of relays", .timeLimit(.minutes(30)))
struct DeviceTokenTests {
    private let digits = String(repeating: "0aF9", count: 16)

    private func text(_ secret: Secret) -> String { secret.reveal { String(decoding: $0, as: UTF8.self) } }

    @Test("Bytes and digits of either case are one APNs token, in small digits")
    func apns() throws {
        let bytes: [UInt8] = (0..<16).flatMap { _ in [0x0A, 0xF9] as [UInt8] }
        let token = try DeviceToken.apns(bytes: bytes)
        #expect(try token == .apns(hex: digits))
        #expect(try token == .apns(hex: digits.uppercased()))
        #expect(try token != .apns(hex: digits, .development), "another of Apple's services")
        #expect(text(token.text) == digits.lowercased())
        #expect(token.bytes.reveal { Array($0) } == bytes)
        #expect((token.service, token.entitlement) == (.apns, .production))
    }

    @Test("An FCM token is its text, byte for byte")
    func fcm() throws {
        let token = try DeviceToken.fcm("dQw4:APA91b-_x")
        #expect(text(token.text) == "dQw4:APA91b-_x")
        #expect(try token != .fcm("dqw4:APA91b-_x"))
        #expect(try DeviceToken.fcm("ab") != .apns(hex: "ab"))
        #expect(token.bytes == token.text)
        #expect(token.entitlement == .production)
    }

    @Test(
        "What is no token is refused",
        arguments: ["", "a", "abc", "xy", "0a 0b", "0x0a", "ä", String(repeating: "a", count: 202)])
    func noAPNs(_ text: String) {
        #expect(throws: DeviceError(.malformedToken)) { try DeviceToken.apns(hex: text) }
    }

    @Test(
        "What Google never gives is refused",
        arguments: ["", "a b", "a\n", "ä", "a\u{7F}", String(repeating: "a", count: 4_097)])
    func noFCM(_ text: String) {
        #expect(throws: DeviceError(.malformedToken)) { try DeviceToken.fcm(text) }
    }

    @Test("Lengths at their bounds")
    func bounds() throws {
        #expect(throws: DeviceError(.malformedToken)) { try DeviceToken.apns(bytes: [UInt8]()) }
        #expect(throws: DeviceError(.malformedToken)) {
            try DeviceToken.apns(bytes: [UInt8](repeating: 1, count: 101))
        }
        #expect(try DeviceToken.apns(bytes: [UInt8](repeating: 1, count: 100)).text.count == 200)
        #expect(try DeviceToken.apns(hex: String(repeating: "a", count: 200)).bytes.count == 100)
        #expect(try DeviceToken.fcm(String(repeating: "a", count: 4_096)).text.count == 4_096)
    }

    @Test("Its code for support is another each day, and the same for either case of its digits")
    func supportCode() throws {
        let (today, tomorrow) = (UnixTime(seconds: 1_800_000_000), UnixTime(seconds: 1_800_086_400))
        let token = try DeviceToken.apns(hex: digits)
        #expect(token.supportCode(at: today) == "ETWD-9Y57-EMEN")
        #expect(token.supportCode(at: tomorrow) == "NCQM-TCFV-1MQK")
        #expect(try DeviceToken.apns(hex: digits.uppercased()).supportCode(at: today) == "ETWD-9Y57-EMEN")
        let google = try DeviceToken.fcm("dQw4:APA91b-_x")
        #expect(google.supportCode(at: today) == "F4VE-B9X2-NYQ8")
        #expect(google.supportCode(at: tomorrow) == "NVFF-2FDA-2GSC")
    }

    @Test("It prints as nothing of itself")
    func prints() throws {
        let token = try DeviceToken.apns(hex: digits)
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped] {
            #expect(!text.lowercased().contains("0af9"), "\(text)")
        }
    }

    @Test("Cells of a kept row are read as they were written, and nothing else is")
    func cells() throws {
        for token in [
            try DeviceToken.apns(hex: digits), try .apns(hex: digits, .development), try .fcm("a:b")
        ] {
            #expect(DeviceToken(cells: token.cells) == token)
        }
        let rows = [
            ["apns", "production", digits], ["apns", "production", "abc"], ["apns", "production", ""],
            ["fcm", "development", "a"], ["fcm", "production", ""], ["gcm", "production", "ab"],
            ["apns", "sandbox", "ab"], ["apns", "production"], []
        ]
        for row in rows { #expect(DeviceToken(cells: row.map { Secret($0.utf8) }) == nil, "\(row)") }
    }

    // MARK: keys

    @Test("Keys of every protocol are read, by their length")
    func keys() throws {
        let zulip = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
        #expect(try RelayKey(text: zulip).text == zulip)
        #expect(try RelayKey(text: zulip).bytes.count == 32)
        let half = String(repeating: "aB", count: 32)
        #expect(try RelayKey(text: half).text == half.lowercased())
        #expect(try RelayKey(text: "0x" + half) == RelayKey(text: half))
        #expect(try RelayKey(text: "02" + half).bytes.count == 33)
        let point = half + half
        #expect(try RelayKey(text: point) == RelayKey(text: "0X04" + point))
        #expect(try RelayKey(text: "0x" + point).bytes.first == 4)
        #expect(try RelayKey(text: point).text == "04" + point.lowercased())
    }

    @Test(
        "What is no key is refused",
        arguments: [
            "", "0x", String(repeating: "a", count: 62), String(repeating: "g", count: 64),
            "05" + String(repeating: "a", count: 64), "02" + String(repeating: "a", count: 128),
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmp=", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmoA",
            String(repeating: "a", count: 131), " " + String(repeating: "a", count: 63)
        ])
    func noKey(_ text: String) {
        #expect(throws: DeviceError(.malformedKey)) { try RelayKey(text: text) }
    }
}
