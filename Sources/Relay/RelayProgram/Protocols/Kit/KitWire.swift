import NIOCore
import NIOPosix
import PushModel
import SealbellKit
import WebClient
import WireFormats

/// Whoever carries a device's HTTP calls.
protocol KitWeb: Sendable {
    /// - Parameter patience: when no answer has come by then, there is none.
    /// - Throws: what kept the answer away; among it a body of more bytes than the call takes.
    func answer(_ call: HTTPCall, within patience: Duration) async throws(WebError) -> WebAnswer
}

/// Carries out what a device, or a sender, has to say over HTTP.
struct KitWire: Sendable {
    let web: any KitWeb
    let patience: Duration

    /// - Parameter patience: of whoever waits at a command line, for an answer that comes at once.
    init(_ web: any KitWeb, patience: Duration) { (self.web, self.patience) = (web, patience) }

    /// - Returns: an answer of none for a call that is none of HTTP.
    func reply(to call: Call) async -> KitReply {
        guard let http = call.http else { return KitReply(.none) }
        let isLong = call.patience > KitLimits.patience
        return await reply(to: http, within: isLong ? max(patience, call.patience) : patience)
    }

    func answer(_ call: Call) async -> CallAnswer { await reply(to: call).answer }

    /// Makes an origin's call.
    func answer(_ call: HTTPCall) async -> CallAnswer { await reply(to: call, within: patience).answer }

    private func reply(to call: HTTPCall, within patience: Duration) async -> KitReply {
        do throws(WebError) {
            let answer = try await web.answer(call, within: patience)
            return KitReply(
                .http(status: answer.status, retryAfter: answer.retryAfter, body: answer.body))
        } catch { return KitReply(.none, error.code) }
    }
}

/// What came back over HTTP.
struct KitReply: Sendable {
    let answer: CallAnswer
    /// Why nobody answered.
    let fault: WebErrorCode?

    init(_ answer: CallAnswer, _ fault: WebErrorCode? = nil) { (self.answer, self.fault) = (answer, fault) }

    /// For the person at the terminal; nothing of the server's own.
    var words: String { answer.words + (fault.map { ". \($0.sentence)" } ?? "") }
}

extension CallAnswer {
    /// For the person at the terminal: `HTTP 200`, `no answer`.
    var words: String { if case .http(let status, _, _) = self { "HTTP \(status)" } else { "no answer" } }
}

extension HTTPSFetch: KitWeb {
    func answer(_ call: HTTPCall, within patience: Duration) async throws(WebError) -> WebAnswer {
        guard let method = WebRequest.Method(rawValue: call.method) else { throw WebError(.malformedURL) }
        return try await fetch(
            WebRequest(
                method, url: call.url, headers: call.headers.map { ($0.name, $0.value.word) },
                body: call.body.count == 0 ? nil : call.body, answerLimitBytes: call.answerLimitBytes,
                deadline: patience, publicAddressesOnly: false))
    }
}

/// Carries calls over a connection of its own each (``LocalCall``), without TLS too where a URL says so.
struct DirectWeb: KitWeb {
    /// PEM of an authority to trust instead of the system's.
    var authority: [UInt8]?
    /// Where a server is called, whatever host and port its calls name; its path comes before theirs.
    var base: ServerURL?

    func answer(_ call: HTTPCall, within patience: Duration) async throws(WebError) -> WebAnswer {
        guard let named = ServerURL(call.url),
            let wire = LocalCall(
                url: (base ?? named).base, authority: authority,
                deadline: .milliseconds(patience.wholeMilliseconds))
        else { throw WebError(.malformedURL) }
        let path = (base?.path ?? "") + named.path
        let answer: LocalCall.Answer
        do throws(LocalCall.Fault) {
            answer = try await wire.ask(
                call.method, path.isEmpty ? "/" : path, headers: call.headers, body: call.body)
        } catch { throw WebError(.unreachable) }
        guard answer.body.count <= call.answerLimitBytes else { throw WebError(.answerTooLarge) }
        return WebAnswer(
            status: answer.status, retryAfter: answer.header("retry-after"), body: Secret(answer.body))
    }
}

/// A URL of a server or a relay in its two parts: where to connect, and what comes after it.
struct ServerURL: Sendable {
    /// `https://cloud.example.org:443`.
    let base: String
    /// From the first slash on; empty where there is none.
    let path: String

    /// `nil` for what is no http or https URL.
    init?(_ text: String) {
        guard let scheme = ["https", "http"].first(where: { text.hasPrefix("\($0)://") }),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        let rest = text.dropFirst(scheme.count + 3)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let authority = rest[..<slash]
        guard !authority.isEmpty, !authority.contains("@") else { return nil }
        let hasPort = authority.last != "]" && authority.contains(":")
        base = "\(scheme)://\(authority)" + (hasPort ? "" : scheme == "https" ? ":443" : ":80")
        path = String(rest[slash...])
    }
}

extension KitWire {
    /// - Parameter ca: a PEM file of the authority to trust instead of the system's.
    /// - Throws: `CommandFailure` that names the file.
    init(direct ca: String?, base: ServerURL? = nil, _ shell: Shell) throws(CommandFailure) {
        let authority = try shell.content(of: ca)?.reveal { Array($0) }
        self.init(DirectWeb(authority: authority, base: base), patience: shell.wait)
    }
}

extension HTTPSFetch {
    /// For a command.
    ///
    /// - Parameter ca: a PEM file of an authority to trust beside the system's.
    convenience init(beside ca: String?, _ shell: Shell) {
        self.init(
            WebOptions(extraAuthorities: ca.map { [joinPath(shell.facts.workingDirectory, $0)] } ?? []),
            group: MultiThreadedEventLoopGroup.singleton, world: shell.world)
    }
}

extension KitWire {
    /// - Parameter ca: a PEM file of an authority to trust beside the system's.
    init(beside ca: String?, _ shell: Shell) {
        self.init(HTTPSFetch(beside: ca, shell), patience: shell.wait)
    }
}
