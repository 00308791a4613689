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
        guard let url = ServerURL(call.url),
            let wire = LocalCall(url: url.base, authority: authority, deadline: deadline)
        else { return .none }
        do throws(LocalCall.Fault) {
            let answer = try await wire.ask(
                call.method, url.path.isEmpty ? "/" : url.path, headers: call.headers, body: call.body)
            return NextcloudAnswer(
                status: answer.status, retryAfter: answer.header("retry-after"), body: Secret(answer.body))
        } catch {
            return .none
        }
    }
}
