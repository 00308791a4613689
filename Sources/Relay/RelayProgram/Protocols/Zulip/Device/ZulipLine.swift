import NIOCore
import NIOPosix
import PushModel
import WebClient
import WireFormats
import ZulipPush

/// One account's calls to its server (docs/guides/zulip.md).
struct ZulipLine: Sendable {
    struct Answer: Sendable {
        /// `nil`: nobody answered.
        var status: Int?
        var retryAfter: String?
        var body = Secret([])
        /// Why nobody did.
        var fault: WebErrorCode?

        /// For the person at the terminal; nothing of the server's own.
        var words: String {
            if let status { return "HTTP \(status)" }
            return "no answer" + (fault.map { ". \($0.sentence)" } ?? "")
        }

        var ofCall: CallAnswer {
            status.map { .http(status: $0, retryAfter: retryAfter, body: body) } ?? .none
        }

        /// The body, where it is JSON of a success.
        func success(limitBytes: Int) -> JSONValue? {
            // What is no JSON is no success of this protocol.
            guard status == 200, let json = body.reveal({ try? JSONValue.parse($0, limitBytes: limitBytes) }),
                json["result"]?.string == "success"
            else { return nil }
            return json
        }
    }

    private let web: any WebFetch
    private let url: String
    private let user: String
    private let apiKey: Secret
    private let patience: Duration

    /// A poll is answered after 25 s or less by our origin, and after a minute by others.
    private static let pollDeadline = Duration.seconds(90)
    /// An answer to a call; of a server's settings, a few KB with its ways to log in.
    static let answerBytes = 1 << 20
    /// Events and state hold what was asked for, about registrations.
    static let stateBytes = 8 << 20

    init(_ account: PlayedZulip.Account, _ web: any WebFetch, _ shell: Shell) {
        self.init(account.url, user: account.user, apiKey: account.apiKey, web, shell)
    }

    init(_ url: String, user: String, apiKey: Secret, _ web: any WebFetch, _ shell: Shell) {
        (self.url, self.user, self.apiKey, self.web) = (url, user, apiKey, web)
        patience = .nanoseconds(shell.patience.nanoseconds)
    }

    /// The way to servers.
    ///
    /// - Parameter authority: PEM file of an authority to trust beside the system's.
    static func web(_ authority: String?, _ shell: Shell) -> HTTPSFetch {
        HTTPSFetch(
            WebOptions(extraAuthorities: authority.map { [$0] } ?? []),
            group: MultiThreadedEventLoopGroup.singleton, world: shell.world)
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

    func settings() async -> Answer { await ask(.get, "/api/v1/server_settings", isOpen: true) }

    /// Who this is: `user_id`.
    func me() async -> Answer { await ask(.get, "/api/v1/users/me") }

    /// Makes a call of the device's, which has all that belongs to it.
    func make(_ call: HTTPCall) async -> Answer {
        guard let method = WebRequest.Method(rawValue: call.method) else { return Answer() }
        let headers = call.headers.map { (name: $0.name, value: $0.value.word) }
        return await ask(
            WebRequest(
                method, url: call.url, headers: headers, body: call.body.count == 0 ? nil : call.body,
                answerLimitBytes: call.answerLimitBytes, deadline: patience, publicAddressesOnly: false))
    }

    /// Opens an event queue, with the state beside it.
    func openQueue() async -> Answer {
        let types = #"["push_account","push_device","device","realm"]"#
        let form = Form([
            (name: "event_types", value: Array(types.utf8)),
            (name: "fetch_event_types", value: Array(types.utf8))
        ])
        return await ask(
            .post, "/api/v1/register", body: Secret(form.encoded()), limitBytes: Self.stateBytes)
    }

    /// Waits for events.
    func events(_ queue: String, after last: Int64) async -> Answer {
        let query = Form([
            (name: "queue_id", value: Array(queue.utf8)),
            (name: "last_event_id", value: Array(String(last).utf8))
        ])
        return await ask(
            .get, "/api/v1/events?" + String(decoding: query.encoded(), as: UTF8.self),
            limitBytes: Self.stateBytes, deadline: max(patience, Self.pollDeadline))
    }

    /// Closes an event queue: a server keeps few for a user.
    func close(_ queue: String) async {
        let query = Form([(name: "queue_id", value: Array(queue.utf8))])
        _ = await ask(.delete, "/api/v1/events?" + String(decoding: query.encoded(), as: UTF8.self))
    }

    private func ask(
        _ method: WebRequest.Method, _ path: String, body: Secret? = nil, isOpen: Bool = false,
        limitBytes: Int = Self.answerBytes, deadline: Duration? = nil
    ) async -> Answer {
        var headers: [(name: String, value: String)] = []
        if !isOpen { headers.append(("Authorization", authorization)) }
        if body != nil { headers.append(("Content-Type", "application/x-www-form-urlencoded")) }
        return await ask(
            WebRequest(
                method, url: url + path, headers: headers, body: body, answerLimitBytes: limitBytes,
                deadline: deadline ?? patience, publicAddressesOnly: false))
    }

    private func ask(_ request: WebRequest) async -> Answer {
        do throws(WebError) {
            let answer = try await web.fetch(request)
            return Answer(status: answer.status, retryAfter: answer.retryAfter, body: answer.body)
        } catch { return Answer(fault: error.code) }
    }

    private var authorization: String {
        let pair = apiKey.reveal { Array("\(user):".utf8) + $0 }
        return "Basic " + Base64.text(pair)
    }
}
