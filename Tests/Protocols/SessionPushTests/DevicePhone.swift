import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

/// A phone and what it holds, for tests of the device.
struct DevicePhone {
    static let now = UnixTime(seconds: 1_800_000_000)
    static let tokenText = String(repeating: "a5", count: 32)

    var device: SessionRoutine
    var random = SeededRandom(seed: 11)
    let key: SessionAccountKey

    init(accounts: Int = 1, token: String = DevicePhone.tokenText) throws {
        device = SessionRoutine(using: &random)
        key = try SessionAccountKey(.generate(using: &random))
        try device.watch(WatchedAccount(key))
        for _ in 1..<max(accounts, 1) {
            try device.watch(WatchedAccount(SessionAccountKey(.generate(using: &random), .group)))
        }
        device.use(try Self.token(token))
    }

    static func token(
        _ text: String = DevicePhone.tokenText, _ service: SessionService = .apns
    ) throws -> SessionDeviceToken {
        try SessionDeviceToken(service, Secret(text.utf8))
    }

    static func says(_ text: String, status: Int = 200) -> SessionAnswer {
        SessionAnswer(status: status, body: Secret(text.utf8))
    }

    /// What a server says of so many new subscriptions.
    static func added(_ count: Int) -> SessionAnswer {
        let one = #"{"success":true,"added":true,"message":"x"}"#
        return says(
            count == 1 ? one : "[" + [String](repeating: one, count: count).joined(separator: ",") + "]")
    }

    static func elements(_ call: SessionCall) throws -> [JSONValue] {
        let json = try call.body.reveal { try JSONValue.parse($0) }
        return json.array ?? [json]
    }

    mutating func settle(
        _ call: SessionCall, _ answer: SessionAnswer, at now: UnixTime = DevicePhone.now
    ) -> [SessionVerdict] {
        device.settle(call.id, answer, now: now, using: &random).map(\.verdict)
    }

    /// All that is due, taken by the server.
    mutating func subscribe(at now: UnixTime = DevicePhone.now) throws {
        for call in try device.renewal(due: now) {
            _ = settle(call, Self.added(try Self.elements(call).count), at: now)
        }
    }

    /// A push as the relay's peers seal it.
    func push(_ plain: [UInt8], key: Secret? = nil) throws -> DeliveredPush {
        let nonce = [UInt8](repeating: 7, count: 24)
        let sealed = try XChaCha20Poly1305.seal(
            Secret(plain), with: [], key: key ?? device.encKey, nonce: nonce)
        return DeliveredPush(payload: Secret(Base64.encode(nonce + sealed)))
    }

    /// A list of metadata, as JSON, and a message.
    func plain(_ metadata: String, _ message: String? = nil, padding: Int = 0) -> [UInt8] {
        let account = self.key.account.bytes.reveal { Hex.encode($0) }
        let json = metadata.replacing("ACCOUNT", with: account)
        let tail = message.map { "\($0.utf8.count):\($0)" } ?? ""
        return Array("l\(json.utf8.count):\(json)\(tail)e".utf8) + [UInt8](repeating: 0, count: padding)
    }
}
