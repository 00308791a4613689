import PushModel
import WireFormats
import ZulipPush

/// A phone with Zulip accounts that the command line plays, and what it keeps between two commands: a file of
/// its own, because it holds API keys and the keys that open notifications.
struct PlayedZulip {
    /// What the library keeps of an account has 256 KiB at most, and some KiB as a rule. It is a text within
    /// a text here, so that each of its quotes is four bytes.
    static let limitBytes = 3 << 20
    /// Each that listens holds a connection, and a server on this machine is called over eight at most.
    static let accounts = 6

    /// Which push service reaches it.
    var service: TokenKind
    /// As a push service would have given it.
    var token: Secret
    /// The app's bundle id, for APNs.
    var appID: String?
    /// The relay's public key, as built into the app.
    var bouncerKey: String
    /// State directory of the sandbox whose push services deliver.
    var sandbox: String?
    /// How far the sandbox's deliveries were read.
    var seen = SeenDeliveries()
    var accounts: [Account] = []

    struct Account {
        /// Where its server is called; without a slash at the end.
        let url: String
        /// The login, as the server's Basic authentication takes it.
        let user: String
        var apiKey: Secret
        /// The only one it speaks; `nil`: the server's first of all.
        var profile: ZulipProfile?
        var requiresEncryption = false
        /// The server was told to forget it, and it registers no more by itself.
        var isForgotten = false
        /// What the server was last found to speak.
        var spoken: ZulipProfile?
        /// How the server knows the registration: `push_account_id`, in v12 `device_id`.
        var registration: String?
        /// By which the server's notifications name it.
        var realmURL: String
        var userID: Int64
        /// What the device has kept; `nil`: it is a new one.
        var kept: Secret?
    }

    /// - Throws: `CommandFailure` for a text that no push service gives out.
    func push() throws(CommandFailure) -> DeviceToken {
        do throws(DeviceError) {
            switch service {
            case .apns: return try .apns(hex: token.word)
            case .fcm: return try .fcm(token.word)
            }
        } catch { throw CommandFailure(.failed, error.sentence) }
    }

    // MARK: The file

    /// - Throws: `CommandFailure` that names the file.
    init(file: String) throws(CommandFailure) {
        self = try PlayedFile.read(file, limitBytes: Self.limitBytes, "phone") { try PlayedZulip($0) }
    }

    init(_ service: TokenKind, token: Secret, appID: String?, bouncerKey: String) {
        (self.service, self.token, self.appID, self.bouncerKey) = (service, token, appID, bouncerKey)
    }

    private init?(_ members: [String: Secret]) throws {
        guard let service = members["service"].flatMap({ TokenKind(rawValue: $0.played) }),
            let token = members["token"], let key = members["bouncer_key"]?.played,
            let kept = members["accounts"]
        else { return nil }
        self.init(service, token: token, appID: members["app_id"]?.played, bouncerKey: key)
        sandbox = members["sandbox"]?.played
        seen = SeenDeliveries(members["seen"]?.played)
        accounts = try PlayedFile.rows(kept, atMost: Self.accounts).map { row in
            guard let account = Account(row) else { throw FormatError(.wrongType) }
            return account
        }
    }

    /// Writes the file, which its owner alone may read.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func write(_ file: String) throws(CommandFailure) {
        var inner = JSONWriter(reserving: 1 << 16)
        inner.beginArray()
        for account in accounts { PlayedFile.write(account.members, into: &inner) }
        inner.endArray()
        let kept = inner.takeSecret()
        var json = JSONWriter(reserving: 1 << 14 + 2 * kept.count)
        PlayedFile.write(
            [
                ("service", Secret(service.rawValue.utf8)), ("token", token),
                ("app_id", appID.map { Secret($0.utf8) }), ("bouncer_key", Secret(bouncerKey.utf8)),
                ("sandbox", sandbox.map { Secret($0.utf8) }), ("seen", Secret(seen.text.utf8)),
                ("accounts", kept)
            ], into: &json)
        try replaceFile(file, json.takeSecret())
    }
}

extension PlayedZulip.Account {
    fileprivate init?(_ row: [String: Secret]) {
        guard let url = row["url"]?.played, let user = row["user"]?.played, let apiKey = row["api_key"],
            let realmURL = row["realm_url"]?.played, let userID = row["user_id"].flatMap({ Int64($0.played) })
        else { return nil }
        let profiles = ["profile", "spoken"].map { name in
            row[name].map { ZulipProfile(rawValue: $0.played) }
        }
        // A word that is there and means nothing is of another version.
        guard !profiles.contains(.some(nil)) else { return nil }
        self.init(
            url: url, user: user, apiKey: apiKey, profile: profiles[0] ?? nil,
            requiresEncryption: row["require_e2ee"] != nil, isForgotten: row["forgotten"] != nil,
            spoken: profiles[1] ?? nil, registration: row["registration"]?.played, realmURL: realmURL,
            userID: userID, kept: row["device"])
    }

    fileprivate var members: [(name: String, value: Secret?)] {
        let yes = Secret("yes".utf8)
        return [
            ("url", Secret(url.utf8)), ("user", Secret(user.utf8)), ("api_key", apiKey),
            ("profile", profile.map { Secret($0.rawValue.utf8) }),
            ("require_e2ee", requiresEncryption ? yes : nil), ("forgotten", isForgotten ? yes : nil),
            ("spoken", spoken.map { Secret($0.rawValue.utf8) }),
            ("registration", registration.map { Secret($0.utf8) }), ("realm_url", Secret(realmURL.utf8)),
            ("user_id", Secret(String(userID).utf8)), ("device", kept)
        ]
    }
}

extension Secret {
    /// As a text of a played party's file.
    fileprivate var played: String { reveal { String(decoding: $0, as: UTF8.self) } }
}

/// The file beside the state that says whose phone it is: it belongs to no backup, so that data without it
/// are known to be another phone's.
enum PlayedMarker {
    private static let limitBytes = 256

    static func path(beside state: String) -> String { state + ".marker" }

    /// The marker, made where there is none.
    ///
    /// - Throws: `CommandFailure` that names the file. One that cannot be read is not made again: a phone
    ///   that does not know its marker must not take itself for another.
    static func keep(beside state: String) throws(CommandFailure) -> Secret {
        let file = path(beside: state)
        let kept: Secret
        do throws(FileFault) { kept = try readSecret(file, limitBytes: limitBytes) } catch {
            guard error == .missing else {
                throw CommandFailure(.failed, "\(file): \(error.sentence)")
            }
            let marker = ZulipLogin.newMarker()
            try replaceFile(file, marker.hexDigits)
            return marker
        }
        guard let marker = kept.trimmed.fromHex, (16...64).contains(marker.count) else {
            throw CommandFailure(.failed, "\(file): It holds no marker of this command's.")
        }
        return marker
    }
}
