import Foundation
import SealbellKit

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The time now.
public func now() -> UnixTime { UnixTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000)) }

/// Makes calls that are HTTP requests; what else a protocol asks for is its app's own.
public struct Network: Sendable {
    public init() {}

    public func send(_ call: Call) async -> CallAnswer {
        guard let http = call.http, let url = URL(string: http.url) else { return .none }
        var request = URLRequest(
            url: url, cachePolicy: .reloadIgnoringLocalCacheData,
            timeoutInterval: Double(call.patience.components.seconds))
        request.httpMethod = http.method
        for header in http.headers {
            request.setValue(
                header.value.reveal { String(decoding: $0, as: UTF8.self) }, forHTTPHeaderField: header.name)
        }
        if http.body.count > 0 { request.httpBody = http.body.reveal { Data($0) } }
        // No answer is no answer, whatever the reason.
        guard let (body, response) = try? await URLSession.shared.data(for: request, delegate: NoRedirect()),
            let answer = response as? HTTPURLResponse, body.count <= http.answerLimitBytes
        else { return .none }
        return .http(
            status: answer.statusCode, retryAfter: answer.value(forHTTPHeaderField: "Retry-After"),
            body: Secret(body))
    }
}

/// A redirected call would carry the user's password to wherever the server says.
private final class NoRedirect: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }
}
