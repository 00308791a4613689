import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// A Nextcloud server with one user, played in memory: what it answers to a device, and what it says to a
/// proxy.
struct DemoCloud: Sendable {
    let url: String
    let user: NextcloudUser
    let userID = "ada"
    private let origin: NextcloudOrigin
    private(set) var rows: [RegisteredDevice] = []
    private var conditions = PushConditions(appPasswords: [:])

    init(_ url: String = "https://cloud.example.org", padding: RSAPadding = .oaepSHA1) throws {
        self.url = url
        user = NextcloudUser(
            cloudID: AppPasswordIdentity.cloudID(user: userID, serverURL: url), key: try .generate())
        origin = NextcloudOrigin(NextcloudOrigin.Settings(padding: padding, localProxies: .allowed))
    }

    /// What the server can do, as release 27 says it.
    static let capabilitiesText =
        #"{"ocs":{"data":{"capabilities":{"notifications":{"ocs-endpoints":["list","get","delete"],"#
        + #""push":["devices","object-data","delete"]}}}}}"#

    /// A device logs in: it has an app password from then on.
    func account(login: String = "ada@example.org") -> NextcloudAccount {
        NextcloudAccount(
            serverURL: url, userID: userID, loginName: login, appPassword: Secret("app-password".utf8))
    }

    /// Answers what a device asks of this server with the app password of that number; `nil`: it asks
    /// another.
    mutating func answer(_ call: Call, tokenID: Int64, now: UnixTime) throws -> CallAnswer? {
        guard let http = call.http, http.url.hasPrefix(url) else { return nil }
        if http.method == "GET" { return .http(status: 200, body: Secret(Self.capabilitiesText.utf8)) }
        let agent = http.headers.first { $0.name == "User-Agent" }?.value.word
        return try answer(
            http.method, userAgent: agent ?? "", http.body, tokenID: tokenID, now: now)
    }

    /// - Parameter body: a form.
    mutating func answer(
        _ method: String, userAgent: String, _ body: Secret, tokenID: Int64, now: UnixTime
    ) throws -> CallAnswer {
        let session = NextcloudSession(user: user, tokenID: tokenID)
        let verdict: RegistrationVerdict
        if method == "DELETE" {
            verdict = origin.unregister(by: session, rows: rows)
        } else {
            let form = try body.reveal { (bytes) throws(FormatError) in try Form.parse(bytes) }
            let asked = PushRegistration(
                pushTokenHash: form.text("pushTokenHash"), devicePublicKey: form.text("devicePublicKey"),
                proxyServer: form.text("proxyServer"))
            verdict = try origin.register(asked, by: session, userAgent: userAgent, rows: rows)
        }
        rows.removeAll { verdict.deletes.contains($0.tokenID) }
        if let row = verdict.row {
            rows.removeAll { $0.tokenID == row.tokenID }
            rows.append(row)
        }
        conditions.appPasswords[tokenID] = AppPasswordState(lastUsedAt: now)
        return CallAnswer(
            status: verdict.answer.httpStatus(.v2), body: verdict.answer.body(.v2, .json))
    }

    /// The calls that tell the user's devices something: one for each proxy.
    func notify(_ notification: NextcloudNotification, now: UnixTime) throws -> [SealedEntry] {
        let audience = conditions.audience(for: notification, of: rows, now: now)
        return try origin.notify(notification, to: audience, of: user).entries
    }

    /// The same for notifications that are gone.
    func withdraw(_ ids: [Int64], of app: String, now: UnixTime) throws -> [SealedEntry] {
        let audience = conditions.audience(forWithdrawalsOf: app, of: rows, now: now)
        return try origin.withdraw(ids, from: audience, of: user).entries
    }

    func call(_ entries: [SealedEntry]) -> HTTPCall { origin.call(entries) }

    /// Forgets what a proxy does not know, as a server does by its answer.
    mutating func read(_ answer: CallAnswer, to entries: [SealedEntry]) -> ProxyVerdict {
        let verdict = ProxyVerdict(answer, to: entries, rows: rows)
        rows.removeAll { verdict.deletes.contains($0.tokenID) }
        return verdict
    }
}
