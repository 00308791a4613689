import HTTPIngress
import NIOCore
import PushModel
import WireFormats

/// Calls of an origin to the relay of its own process: through the relay's entry, credentials included,
/// without a socket (docs/decisions/0126-one-process.md).
struct RelayFaceFetch: WebFetch {
    /// What calls name in place of a host.
    static let server = "https://relay.invalid"

    private let neighbours: @Sendable () -> [any HostedInstance]
    /// For all other servers: proxies that phones have named.
    private let others: any WebFetch

    init(_ neighbours: @escaping @Sendable () -> [any HostedInstance], others: any WebFetch) {
        self.neighbours = neighbours
        self.others = others
    }

    func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        guard request.url.hasPrefix(Self.server) else { return try await others.fetch(request) }
        guard let face = neighbours().compactMap({ $0 as? ZulipInstance }).first?.face
        else { throw WebError(.unreachable) }
        let target = request.url.dropFirst(Self.server.count)
        let path = target.prefix { $0 != "?" }
        let query = target.count > path.count ? String(target.dropFirst(path.count + 1)) : nil
        let body = request.body.map { $0.reveal { ByteBuffer(bytes: $0) } } ?? ByteBuffer()
        let answer = await face.respond(
            to: HTTPInbound(
                request.method.verb, path: String(path), query: query,
                headers: request.headers.map { ($0.name, $0.value) }, body: body, client: .nobody,
                isLoopback: true, isSecure: true))
        guard answer.body.count <= request.answerLimitBytes else { throw WebError(.answerTooLarge) }
        let retryAfter = answer.headers.first { "\($0.name)".lowercased() == "retry-after" }?.value
        return WebAnswer(status: answer.status, retryAfter: retryAfter, body: Secret(answer.body))
    }
}

extension WebRequest.Method {
    fileprivate var verb: HTTPVerb {
        switch self {
        case .get: .get
        case .post: .post
        case .delete: .delete
        }
    }
}
