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

    func settings() async -> KitReply { await ask("/api/v1/server_settings") }

    /// Who this is: `user_id`.
    func me() async -> KitReply { await ask("/api/v1/users/me", [("Authorization", authorization)]) }

    private func ask(_ path: String, _ headers: [(name: String, value: Secret)] = []) async -> KitReply {
        let http = HTTPCall(
            method: "GET", url: url + path, headers: headers, answerLimitBytes: Self.answerBytes)
        return await wire.reply(to: Call(id: 0, .http(http), patience: KitLimits.patience))
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
