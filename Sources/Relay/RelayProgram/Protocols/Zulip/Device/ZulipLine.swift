import PushModel
import SealbellKit
import WebClient
import WireFormats
import ZulipPush

/// One account's calls to its server beside those of its device (docs/guides/zulip.md).
struct ZulipLine: Sendable {
    private let wire: KitWire
    private let url: String
    private let user: String
    private let apiKey: Secret

    /// An answer to a call; of a server's settings, a few KB with its ways to log in.
    static let answerBytes = 1 << 20
    /// Events and state hold what was asked for, about registrations.
    static let stateBytes = 8 << 20

    init(_ account: PlayedZulip.Account, _ wire: KitWire) {
        self.init(account.url, user: account.user, apiKey: account.apiKey, wire)
    }

    init(_ url: String, user: String, apiKey: Secret, _ wire: KitWire) {
        (self.url, self.user, self.apiKey, self.wire) = (url, user, apiKey, wire)
    }

    /// - Returns: the address without a slash at its end.
    /// - Throws: `CommandFailure` for what is no address of a server.
    static func address(_ text: String) throws(CommandFailure) -> String {
        let url = text.hasSuffix("/") ? String(text.dropLast()) : text
        guard !url.contains("?") else { throw CommandFailure(.usage, WebErrorCode.malformedURL.sentence) }
        do throws(WebError) {
            _ = url.hasPrefix("http://") ? try WebAddress(plain: url) : try WebAddress(url)
        } catch { throw CommandFailure(.usage, error.sentence) }
        return url
    }

    // MARK: calls

    func settings() async -> KitReply { await ask("GET", "/api/v1/server_settings", isOpen: true) }

    /// Who this is: `user_id`.
    func me() async -> KitReply { await ask("GET", "/api/v1/users/me") }

    /// Opens an event queue, with the state beside it.
    func openQueue() async -> KitReply {
        let types = #"["push_account","push_device","device","realm"]"#
        let form = Self.form([("event_types", types), ("fetch_event_types", types)])
        return await ask("POST", "/api/v1/register", body: form, limitBytes: Self.stateBytes)
    }

    /// Waits for events: our origin answers after 25 s or less, and others after a minute.
    func events(_ queue: String, after last: Int64) async -> KitReply {
        let query = Self.form([("queue_id", queue), ("last_event_id", String(last))])
        return await ask(
            "GET", "/api/v1/events?\(query.word)", limitBytes: Self.stateBytes,
            patience: KitLimits.longPatience)
    }

    /// Closes an event queue: a server keeps few for a user.
    func close(_ queue: String) async {
        _ = await ask("DELETE", "/api/v1/events?\(Self.form([("queue_id", queue)]).word)")
    }

    private func ask(
        _ method: String, _ path: String, body: Secret = Secret([]), isOpen: Bool = false,
        limitBytes: Int = Self.answerBytes, patience: Duration = KitLimits.patience
    ) async -> KitReply {
        var headers: [(name: String, value: Secret)] = []
        if !isOpen { headers.append(("Authorization", authorization)) }
        if body.count > 0 {
            headers.append(("Content-Type", Secret("application/x-www-form-urlencoded".utf8)))
        }
        let http = HTTPCall(
            method: method, url: url + path, headers: headers, body: body, answerLimitBytes: limitBytes)
        return await wire.reply(to: Call(id: 0, .http(http), patience: patience))
    }

    private static func form(_ fields: [(String, String)]) -> Secret {
        Secret(Form(fields.map { (name: $0.0, value: Array($0.1.utf8)) }).encoded())
    }

    private var authorization: Secret {
        let pair = apiKey.reveal { Array("\(user):".utf8) + $0 }
        return Secret("Basic \(Base64.text(pair))".utf8)
    }
}

extension KitReply {
    /// `nil`: nobody answered.
    var status: Int? { if case .http(let status, _, _) = answer { status } else { nil } }
    var body: Secret { if case .http(_, _, let body) = answer { body } else { Secret([]) } }

    /// The body as JSON.
    func json(limitBytes: Int) -> JSONValue? {
        // What is no JSON says nothing of this protocol.
        body.reveal { try? JSONValue.parse($0, limitBytes: limitBytes) }
    }

    /// The body, where it is JSON of a success.
    func success(limitBytes: Int) -> JSONValue? {
        guard status == 200, let json = json(limitBytes: limitBytes), json["result"]?.string == "success"
        else { return nil }
        return json
    }
}
