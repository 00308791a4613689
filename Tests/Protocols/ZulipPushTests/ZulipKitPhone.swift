import Primitives
import PushModel
import PushTesting
import SealbellKit
import Testing
import WireFormats
import ZulipPush

/// An app with one device, and the server that it calls; a clock that stands where it is put.
struct ZulipKitPhone {
    static let token = "b529dd6f50cf7819418c554cb767b4aef9111bedeb842bc6d25312469e01e03d"
    static let other = "00dd6f50cf7819418c554cb767b4aef9111bedeb842bc6d25312469e01e03d01"
    /// More rounds than any quiet server needs; each is a handful of calls.
    private static let rounds = 60

    var device: ZulipDevice
    var server: KitServer
    var now = UnixTime(seconds: 1_800_000_000)
    var random: SeededRandom
    /// What the app has saved last.
    var saved: Secret?
    var login: ZulipLogin
    /// What the next start uses.
    var token = ZulipKitPhone.token

    init(_ profile: ZulipProfile?, login: ZulipLogin? = nil, seed: UInt64 = 1) throws {
        random = SeededRandom(seed: seed)
        server = KitServer(profile)
        self.login = try login ?? Self.login()
        device = try ZulipDevice(self.login, keeping: nil, using: &random)
        try device.use(token: .apns(hex: token))
    }

    static func login(
        apiKey: String = "the-api-key", relay: UInt8 = 9, user: Int64 = 7, marker: Secret? = nil,
        requireEndToEnd: Bool = false, asksForEvents: ZulipLogin.Asking = .whilePending
    ) throws -> ZulipLogin {
        let pair = try X25519KeyPair(privateKey: Secret([UInt8](repeating: relay, count: 32)))
        return try ZulipLogin(
            realmURL: "https://chat.example.org", userID: user, email: "ada@example.org",
            apiKey: Secret(apiKey.utf8), relayKey: RelayKey(text: Base64.text(pair.publicKey)),
            bundleID: "org.acme.chat", requireEndToEnd: requireEndToEnd, marker: marker,
            asksForEvents: asksForEvents)
    }

    var status: DeviceStatus { device.status(at: now) }

    /// As the loop of an app does it.
    ///
    /// - Parameter step: before each call is made, and behind its answer; `false` ends the round.
    mutating func work(_ step: (inout ZulipKitPhone, Step) throws -> Bool = { _, _ in true }) throws {
        for _ in 0..<Self.rounds {
            let calls = device.due(at: now, using: &random)
            saved = device.kept
            if calls.isEmpty { return }
            for call in calls {
                guard try step(&self, .before) else { break }
                let answer = server.answer(call, at: now)
                guard try step(&self, .heard) else { break }
                device.answered(answer, to: call, at: now, using: &random)
                saved = device.kept
                guard try step(&self, .answered) else { break }
            }
        }
        Issue.record("the device never comes to rest")
    }

    enum Step: CaseIterable { case before, heard, answered }

    /// The app ends, and starts again with what it has saved.
    mutating func restart() throws {
        device = try ZulipDevice(login, keeping: saved, using: &random)
        try device.use(token: .apns(hex: token))
    }

    /// To each time that the device names, for so long.
    mutating func pass(_ span: Duration) throws {
        let end = now + span
        for _ in 0..<2_000 {
            guard let next = device.nextDue, next <= end else { break }
            // A device that names the same time again and again would stand still.
            now = max(now + .milliseconds(1), next)
            try work()
        }
        now = end
        try work()
    }

    // MARK: what the server sends

    /// What the system hands over of a notification that the server seals to a registration.
    func push(
        _ body: String = #""type":"test","time":5"#, to id: String? = nil, user: Int64 = 7
    ) throws -> [String: String] {
        let found = id.flatMap { server.registrations[$0] } ?? server.registrations.values.first
        let fields = try #require(found).fields
        let plain = Secret(
            #"{"realm_url":"https://chat.example.org","realm_name":"Chat","user_id":\#(user),\#(body)}"#.utf8)
        return try Self.push(plain, to: fields)
    }

    static func push(_ plain: Secret, to fields: [String: String]) throws -> [String: String] {
        var random = SeededRandom(seed: 5)
        if let key = fields["push_public_key"] {
            let sealed = try AccountBox.seal(plain, to: PushPublicKey(base64: key), using: &random)
            return [
                "push_account_id": try #require(fields["push_account_id"]), "encrypted_content": sealed.word
            ]
        }
        let key = try Base64.decode(#require(fields["push_key"]))
        let nonce = [UInt8](repeating: 4, count: SecretBox.nonceBytes)
        let box = try SecretBox.seal(plain, key: Secret(key[1...]), nonce: nonce)
        let name = fields["push_key_id"] == nil ? "push_account_id" : "push_key_id"
        return [name: try #require(fields[name]), "encrypted_data": Base64.text(nonce + box)]
    }

    /// Opens in another process, from what was saved.
    func open(_ push: [String: String]) throws -> Opened<ZulipNotification> {
        var random = random
        let device = try ZulipDevice(login, keeping: saved, using: &random)
        return try device.open(Delivered(data: push), at: now)
    }

    /// As APNs hands it over: ids are numbers.
    static func userInfo(_ push: [String: String]) -> [AnyHashable: Any] {
        var info: [AnyHashable: Any] = ["aps": ["mutable-content": 1]]
        for (name, value) in push { info[name] = Int64(value).map { $0 as Any } ?? value }
        return info
    }
}
