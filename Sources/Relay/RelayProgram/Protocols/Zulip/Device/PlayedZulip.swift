import PushModel
import WireFormats
import ZulipPush

/// A phone with Zulip accounts that the command line plays, and what it keeps between two commands: a file of
/// its own, because it holds API keys and the keys that open notifications.
struct PlayedZulip: KitParty {
    /// What the library keeps of an account has 256 KiB at most, and some KiB as a rule. It is a text within
    /// a text here, so that each of its quotes is four bytes.
    static let limitBytes = 3 << 20
    static let noun = "phone"
    /// Each that listens holds a connection, and a server on this machine is called over eight at most.
    static let accounts = 6

    let file: HeldFile
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
        try orFail { () throws(DeviceError) in
            service == .apns ? try .apns(hex: token.word) : try .fcm(token.word)
        }
    }

    // MARK: The file

    init(_ service: TokenKind, token: Secret, appID: String?, bouncerKey: String, _ file: HeldFile) {
        (self.service, self.token, self.appID, self.bouncerKey) = (service, token, appID, bouncerKey)
        self.file = file
    }

    init?(_ row: KitObject, _ file: HeldFile) throws {
        guard let service: TokenKind = row.word("service"), let token = row["token"],
            let key = row.text("bouncer_key"),
            let accounts = try row.rows("accounts", atMost: Self.accounts)
        else { return nil }
        self.init(service, token: token, appID: row.text("app_id"), bouncerKey: key, file)
        sandbox = row.text("sandbox")
        seen = SeenDeliveries(row.text("seen"))
        self.accounts = accounts.compactMap { Account($0) }
        guard self.accounts.count == accounts.count else { return nil }
    }

    var row: KitObject {
        [
            "service": service.rawValue, "token": token, "app_id": appID, "bouncer_key": bouncerKey,
            "sandbox": sandbox, "seen": seen.text, "accounts": KitObject.text(accounts.map(\.row))
        ]
    }
}

extension PlayedZulip.Account {
    fileprivate init?(_ row: KitObject) {
        guard let url = row.text("url"), let user = row.text("user"), let apiKey = row["api_key"],
            let realmURL = row.text("realm_url"), let userID = row.text("user_id").flatMap({ Int64($0) })
        else { return nil }
        let (profile, spoken): (ZulipProfile?, ZulipProfile?) = (row.word("profile"), row.word("spoken"))
        // A word that is there and means nothing is of another version.
        guard (profile == nil) == (row["profile"] == nil), (spoken == nil) == (row["spoken"] == nil) else {
            return nil
        }
        self.init(
            url: url, user: user, apiKey: apiKey, profile: profile,
            requiresEncryption: row["require_e2ee"] != nil, isForgotten: row["forgotten"] != nil,
            spoken: spoken, registration: row.text("registration"), realmURL: realmURL, userID: userID,
            kept: row["device"])
    }

    fileprivate var row: KitObject {
        [
            "url": url, "user": user, "api_key": apiKey, "profile": profile?.rawValue,
            "require_e2ee": requiresEncryption ? "yes" : nil, "forgotten": isForgotten ? "yes" : nil,
            "spoken": spoken?.rawValue, "registration": registration, "realm_url": realmURL,
            "user_id": String(userID), "device": kept
        ]
    }
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
            try writeSecret(file, marker.hexDigits)
            return marker
        }
        guard let marker = kept.trimmed.fromHex, (16...64).contains(marker.count) else {
            throw CommandFailure(.failed, "\(file): It holds no marker of this command's.")
        }
        return marker
    }
}
