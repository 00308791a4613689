import NIOCore
import NextcloudPush
import PushModel
import WebClient

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

/// Makes the calls of a device or an origin over the network, one connection for each.
struct NextcloudWire: Sendable {
    /// PEM of an authority to trust instead of the system's.
    var authority: [UInt8]?
    var deadline = LocalCall.deadline

    /// - Returns: `.none` where nobody answered.
    func answer(_ call: NextcloudCall) async -> NextcloudAnswer {
        guard let answer = await ask(call.method, call.url, call.headers, call.body) else { return .none }
        return NextcloudAnswer(status: answer.status, retryAfter: answer.retryAfter, body: answer.body)
    }

    /// The same of a device's call.
    func answer(_ call: Call) async -> CallAnswer {
        guard let http = call.http, let answer = await ask(http.method, http.url, http.headers, http.body),
            answer.body.count <= http.answerLimitBytes
        else { return .none }
        return .http(status: answer.status, retryAfter: answer.retryAfter, body: answer.body)
    }

    private func ask(
        _ method: String, _ url: String, _ headers: [(name: String, value: Secret)], _ body: Secret
    ) async -> (status: Int, retryAfter: String?, body: Secret)? {
        guard let url = ServerURL(url),
            let wire = LocalCall(url: url.base, authority: authority, deadline: deadline)
        else { return nil }
        do throws(LocalCall.Fault) {
            let answer = try await wire.ask(
                method, url.path.isEmpty ? "/" : url.path, headers: headers, body: body)
            return (answer.status, answer.header("retry-after"), Secret(answer.body))
        } catch {
            return nil
        }
    }
}
