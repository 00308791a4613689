import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// A device as an app has it, whose calls are answered by hand.
struct SessionKitPhone {
    static let added = #"{"success":true,"added":true}"#
    static let removed = #"{"success":true,"removed":true}"#
    static let token = String(repeating: "a5", count: 32)

    let server: SessionServer
    let key: SessionAccountKey
    var device: SessionDevice
    var now = DevicePhone.now
    var random: SeededRandom

    /// - Parameter key: the server's; `nil`: in the clear.
    init(_ onionKey: RelayKey? = nil, seed: UInt64 = 41) throws {
        random = SeededRandom(seed: seed)
        server = try SessionServer(host: "push.example.org", key: onionKey)
        key = try SessionAccountKey(.generate(using: &random))
        device = try SessionDevice(server, keeping: nil, using: &random)
    }

    static func subscribed() throws -> SessionKitPhone {
        var phone = try SessionKitPhone()
        try phone.tell()
        phone.answer(200, added, to: try phone.due())
        return phone
    }

    mutating func tell(_ token: String = SessionKitPhone.token) throws {
        try device.use(token: .apns(hex: token))
        try device.watch(WatchedAccount(key))
    }

    /// The one call that is due.
    mutating func due() throws -> Call {
        let calls = device.due(at: now, using: &random)
        #expect(calls.count == 1)
        return try #require(calls.first)
    }

    /// Whether nothing is due.
    func isIdle() -> Bool {
        var (device, random) = (device, random)
        return device.due(at: now, using: &random).isEmpty
    }

    mutating func answer(_ status: Int?, _ body: String = "", to call: Call) {
        let answer: CallAnswer = status.map { .http(status: $0, body: Secret(body.utf8)) } ?? .none
        device.answered(answer, to: call, at: now, using: &random)
    }

    /// The app ends and starts again, and says what it said before.
    mutating func restart(_ server: SessionServer? = nil, leaves: Bool = false) throws {
        let kept = device.kept
        device = try SessionDevice(server ?? self.server, keeping: kept)
        if server == nil { #expect(device.kept == kept) }
        if leaves { try device.use(token: nil) } else { try tell() }
    }

    /// A push for the account, as a relay seals it.
    func push(_ message: String? = "hello", namespace: Int = 0, hash: String = "abc") throws -> Delivered {
        let account = key.account.bytes.reveal { Hex.encode($0) }
        let head = ##"{"@":"\##(account)","#":"\##(hash)","n":\##(namespace),"t":1,"z":1900000000000,"l":5}"##
        let tail = message.map { "\($0.utf8.count):\($0)" } ?? ""
        let nonce = [UInt8](repeating: 7, count: 24)
        let sealed = try XChaCha20Poly1305.seal(
            Secret("l\(head.utf8.count):\(head)\(tail)e".utf8), with: [], key: device.routine.encKey,
            nonce: nonce)
        return try Delivered(data: ["spns": "1", "enc_payload": Base64.text(nonce + sealed)])
    }
}

extension Call {
    var url: String { http?.url ?? "" }
    var text: String { http?.body.reveal { String(decoding: $0, as: UTF8.self) } ?? "" }
}
