import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// One account on one phone, with a clock that stands where it is put.
struct ZulipPlayedDevice {
    static let start = UnixTime(seconds: 1_800_000_000)
    static let token = "B529DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D"
    static let other = "00DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D01"
    static let zap = ZulipServerSettings(featureLevel: 400, encryptedPushNotifications: true)
    static let v12 = ZulipServerSettings(featureLevel: 468)
    static let v11 = ZulipServerSettings(featureLevel: 467)
    static let old = ZulipServerSettings(featureLevel: 400)

    var device: ZulipRoutine
    var now = ZulipPlayedDevice.start
    var random: SeededRandom
    var marker = Secret([UInt8](repeating: 7, count: 16))
    var settings: ZulipServerSettings?
    var profiles = ZulipProfile.preference
    var bouncer: X25519KeyPair
    var last: [ZulipDeviceAction] = []
    /// Registering calls, in order.
    var calls: [ZulipDeviceCall] = []

    init(_ settings: ZulipServerSettings, seed: UInt64 = 1, user: Int64 = 7) throws {
        device = ZulipRoutine(account: ZulipAccount(realmURL: "https://chat.example.org", userID: user))
        random = SeededRandom(seed: seed)
        self.settings = settings
        bouncer = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 9, count: 32)))
    }

    static func apns(_ token: String = ZulipPlayedDevice.token) -> DevicePushToken {
        DevicePushToken(kind: .apns, token: Secret(token.utf8), appID: "org.acme.chat")
    }

    var build: ZulipAppBuild {
        get throws {
            try ZulipAppBuild(bouncerKey: Base64.text(bouncer.publicKey), profiles: profiles)
        }
    }

    // MARK: in

    @discardableResult
    mutating func take(
        _ event: ZulipDeviceEvent, beside others: [ZulipRoutine] = []
    ) throws -> [String] {
        last = try device.take(event, now: now, beside: others, using: &random)
        for case .call(let call) in last where call.kind != .forget { calls.append(call) }
        return words
    }

    @discardableResult
    mutating func begin(
        _ token: String? = ZulipPlayedDevice.token, require: Bool = false, beside others: [ZulipRoutine] = []
    ) throws -> [String] {
        try take(
            .start(
                ZulipStart(
                    serverSettings: settings, build: build, token: token.map { Self.apns($0) },
                    requireEndToEnd: require, marker: marker)), beside: others)
    }

    /// The app ends, and starts again with what it kept.
    @discardableResult
    mutating func restart(_ token: String? = ZulipPlayedDevice.token) throws -> [String] {
        device = try ZulipRoutine(keeping: device.encoded())
        return try begin(token)
    }

    @discardableResult
    mutating func answer(
        _ status: Int?, _ body: String = #"{"result":"success","msg":""}"#, retryAfter: String? = nil,
        to call: UInt64? = nil
    ) throws -> [String] {
        let number = try call ?? #require(calls.last).number
        let answer = ZulipDeviceAnswer(
            status: status, retryAfter: retryAfter, body: Secret((status == nil ? "" : body).utf8))
        return try take(.answer(call: number, answer))
    }

    @discardableResult
    mutating func event(_ json: String) throws -> [String] { try take(.events(Secret(filled(json).utf8))) }

    @discardableResult
    mutating func fetch(_ json: String) throws -> [String] { try take(.state(Secret(filled(json).utf8))) }

    @discardableResult
    mutating func wait(_ seconds: Int64) throws -> [String] {
        now = now + .seconds(seconds)
        return try take(.tick)
    }

    /// To the time of the timer that was asked for, and a step.
    @discardableResult
    mutating func waitForTimer() throws -> [String] {
        now = try #require(device.nextDeadline)
        return try take(.tick)
    }

    /// `$ID` in a text is the id of the last registering call.
    private func filled(_ json: String) -> String { json.replacing("$ID", with: id ?? "0") }

    // MARK: out

    var id: String? {
        calls.last { $0.kind == .register }.flatMap { $0.text("push_account_id") ?? $0.text("device_id") }
    }

    var words: [String] { last.map { Self.word($0) } }

    static func word(_ action: ZulipDeviceAction) -> String {
        switch action {
        case .call(let call):
            switch call.kind {
            case .addDevice: "add"
            case .register: "register"
            case .test: "test"
            case .forget: "forget \(call.text("push_account_id") ?? call.text("device_id") ?? "")"
            }
        case .timer: "timer"
        case .notice(let notice): notice.rawValue
        case .endNotice: "end"
        case .legacy: "legacy"
        case .endLegacy: "end legacy"
        }
    }

    /// Until the timer that the last step asked for.
    var pause: Duration? {
        for case .timer(let time) in last { return time.since(now) }
        return nil
    }

    var status: ZulipStatus { ZulipRoutine.status(of: device, now: now) }

    /// What the last registering call sealed to the relay.
    func blob() throws -> RegistrationPlaintext {
        let call = try #require(calls.last { $0.text("encrypted_push_registration") != nil })
        let blob = try #require(call.fields.first { $0.name == "encrypted_push_registration" }).value
        return try RegistrationBox.open(blob, with: bouncer)
    }

    /// Logged in at a server of the specification's own profile, with its registration active.
    static func active(seed: UInt64 = 1, user: Int64 = 7) throws -> ZulipPlayedDevice {
        var phone = try ZulipPlayedDevice(zap, seed: seed, user: user)
        try phone.begin()
        try phone.answer(200)
        try phone.event(#"{"type":"push_account","op":"update","push_account_id":$ID,"status":"active"}"#)
        try #require(phone.status.state == .active)
        return phone
    }
}
