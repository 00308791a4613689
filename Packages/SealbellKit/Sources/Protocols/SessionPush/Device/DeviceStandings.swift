import Primitives
import PushModel
import WireFormats

/// How one account stands with the server.
struct Standing: Sendable {
    /// What it was last subscribed with: another token or other settings are told at once.
    var token: SessionDeviceToken
    var settings: Digest16
    /// When the server took it last; `nil`: not yet.
    var renewedAt: UnixTime?
    /// When it is to be told again.
    var dueAt: UnixTime
    var failures = 0

    /// Whether it is to be told now. A clock that was set back must not put it off.
    func isDue(_ settings: Digest16, now: UnixTime) -> Bool {
        if settings != self.settings || dueAt <= now { return true }
        return dueAt.since(now) > SessionLimits.renewalMost
    }
}

/// A subscription that is to be taken back: its account has left the phone, or its token was replaced. It is
/// signed already, because the account's key may be gone.
struct Leaving: Sendable {
    let account: AccountID
    let token: SessionDeviceToken
    let element: Secret
    let since: UnixTime
    var failures = 0
    var dueAt: UnixTime

    /// An account that came back and left again has two with one token, each with a signature of its own.
    func isSame(as other: Leaving) -> Bool {
        account == other.account && token == other.token && element == other.element
    }

    /// Also when the clock was set back since: nobody knows then how old the signature is.
    func isOver(now: UnixTime) -> Bool {
        let age = now.since(since)
        return age >= SessionLimits.unsubscriptionLife || age < .zero
    }
}

extension WatchedAccount {
    /// What the server is told beside the token, as a digest.
    func settings(_ encKey: Secret) -> Digest16 {
        KeyedHash.digest16(key: encKey) { hash in
            hash.update(account.bytes)
            // Counts are not negative, and namespaces may be.
            hash.update(count: content == .included ? 1 : 0)
            for namespace in namespaces { hash.update(count: Int(namespace) + 32_768) }
            if let subaccount {
                hash.update(subaccount.token)
                hash.update(subaccount.ownerSignature)
            }
        }
    }
}

/// Moments in a device's rows.
enum DeviceRows {
    static func text(_ time: UnixTime?) -> Secret {
        Secret((time.map { String($0.milliseconds) } ?? "").utf8)
    }

    static func time(_ text: Secret) -> UnixTime? {
        Int64(text.word).map { UnixTime(milliseconds: $0) }
    }
}

extension Standing {
    var row: [Secret] {
        [
            Secret(token.service.rawValue.utf8), token.text, Secret(Hex.encode(settings.bytes).utf8),
            DeviceRows.text(renewedAt), DeviceRows.text(dueAt), Secret(String(failures).utf8)
        ]
    }

    /// - Returns: `nil` for a row that ``row`` has not written.
    init?(_ row: ArraySlice<Secret>) {
        let row = Array(row)
        guard row.count == 6, let token = SessionDeviceToken(row: row[0], row[1]),
            let settings = row[2].fromHex.flatMap({ $0.reveal { Digest16($0) } }),
            let dueAt = DeviceRows.time(row[4]), let failures = Int(row[5].word), failures >= 0
        else { return nil }
        self.init(
            token: token, settings: settings, renewedAt: DeviceRows.time(row[3]), dueAt: dueAt,
            failures: failures)
    }
}

extension Leaving {
    var row: [Secret] {
        [
            account.bytes.hexDigits, Secret(token.service.rawValue.utf8), token.text, element,
            DeviceRows.text(since), Secret(String(failures).utf8), DeviceRows.text(dueAt)
        ]
    }

    /// - Returns: `nil` for a row that ``row`` has not written.
    init?(_ row: [Secret]) {
        guard row.count == 7, let account = AccountID(hexDigits: row[0]),
            let token = SessionDeviceToken(row: row[1], row[2]), let since = DeviceRows.time(row[4]),
            let failures = Int(row[5].word), failures >= 0, let dueAt = DeviceRows.time(row[6])
        else { return nil }
        self.init(
            account: account, token: token, element: row[3], since: since, failures: failures, dueAt: dueAt)
    }
}

extension SessionDeviceToken {
    init?(row service: Secret, _ text: Secret) {
        guard let service = SessionService(rawValue: service.word),
            // Then it is not one that was kept.
            let token = try? SessionDeviceToken(service, text)
        else { return nil }
        self = token
    }
}
