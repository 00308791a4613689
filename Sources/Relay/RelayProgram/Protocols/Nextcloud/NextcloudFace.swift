import Delivery
import HTTPIngress
import NextcloudPush
import NIOCore
import PushModel
import WorkPool

/// The Nextcloud relay behind HTTP: bytes in, answer out. It stands below `/<instance>`, below
/// `/<instance>/<app>`, and perhaps at the root (docs/configuration.md).
struct NextcloudFace: HTTPFace {
    private enum Tag {
        static let nothing = 0
        static let endpoint = 1
    }

    /// A larger body is answered away from the event loops: to read 16 MiB of form, and to judge and seal its
    /// 13,000 entries, takes a core a second.
    private static let bytesOnLoop = 64 << 10
    private static let subscriptionField = "x-nextcloud-subscription-key"

    private let conversation: NextcloudConversation
    private let reception: Reception<NextcloudRelay>
    /// Segments that mean an app: its name, or a client's word.
    private let segments: [String]
    private let hasBarePath: Bool

    init(
        _ conversation: NextcloudConversation, _ reception: Reception<NextcloudRelay>, segments: Set<String>,
        hasBarePath: Bool
    ) {
        self.conversation = conversation
        self.reception = reception
        self.segments = segments.sorted()
        self.hasBarePath = hasBarePath
    }

    var name: ConfiguredName { reception.instance }
    var credentialField: String { Self.subscriptionField }
    /// What stands before the role's own paths.
    private var route: String { "/\(name.text)" }

    var routes: [HTTPRoute] {
        let prefixes = [route] + segments.map { "\(route)/\($0)" } + (hasBarePath ? [""] : [])
        var routes = prefixes.flatMap { prefix in
            NextcloudPath.Endpoint.allCases.map { endpoint in
                HTTPRoute(
                    .exact("\(prefix)/\(endpoint.rawValue)"),
                    bodyLimitBytes: NextcloudPath.bodyLimitBytes(endpoint), tag: Tag.endpoint,
                    takesRepeatedSlashes: true)
            }
        }
        // Admins ask here whether the relay is reached.
        let limit = NextcloudLimits.deviceBodyBytes
        routes.append(HTTPRoute(.prefix("\(route)/"), bodyLimitBytes: limit, takesLeadingSlashes: true))
        if hasBarePath { routes.append(HTTPRoute(.exact("/"), bodyLimitBytes: limit)) }
        return routes
    }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        guard inbound.tag == Tag.endpoint else { return Self.nothing }
        guard inbound.body.readableBytes > Self.bytesOnLoop else { return await answer(inbound) }
        return await withTaskExecutorPreference(PoolExecutor.shared) { await answer(inbound) }
    }

    private func answer(_ inbound: HTTPInbound) async -> HTTPOutbound {
        do throws(NextcloudError) {
            let reply = try await read(inbound).taken { (call) throws(NextcloudError) in
                try await reception.receive(
                    call, from: inbound.client, bytes: inbound.body.readableBytes, by: inbound.answerBy)
            }
            return HTTPOutbound(200, .json, reply.body())
        } catch {
            return refusal(error, to: inbound)
        }
    }

    func judge(head: HTTPInbound) -> HTTPOutbound? {
        guard head.tag == Tag.endpoint else { return Self.nothing }
        do throws(NextcloudError) {
            try conversation.check(
                method: head.method.rawValue, path: path(of: head), subscriptionKey: subscriptionKey(head))
            return nil
        } catch {
            return refusal(error, to: head)
        }
    }

    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound {
        switch refusal {
        case .bodyTooLarge: Self.text(NextcloudError(.bodyTooLarge))
        case .notFound: Self.nothing
        case .overloaded, .noAnswer: Self.text(NextcloudError(.overloaded))
        case .clientShare: Self.text(NextcloudError(.rateLimited))
        case .malformed, .headersTooLarge, .slowSender, .unsupportedVersion, .unsupportedTransferCoding,
            .unsupportedExpectation:
            plainRefusal(refusal)
        }
    }

    /// What an admin's browser gets, as a sign that the address is right.
    private static var nothing: HTTPOutbound {
        .text(404, "A push relay for Nextcloud. There is nothing to see here.")
    }

    private func refusal(_ error: NextcloudError, to inbound: HTTPInbound) -> HTTPOutbound {
        if NextcloudConversation.isPush(inbound.path) { return Self.text(error) }
        let answer = NextcloudErrorAnswer(error)
        return HTTPOutbound(answer.status, .json, answer.body, headers: answer.headers)
    }

    private static func text(_ error: NextcloudError) -> HTTPOutbound {
        let answer = NextcloudErrorAnswer(error)
        var outbound = HTTPOutbound.text(answer.status, error.sentence)
        outbound.headers = answer.headers
        return outbound
    }

    // MARK: Reading

    /// The path without the instance's own part; several slashes count as one.
    private func path(of inbound: HTTPInbound) -> String {
        let path = PathSlashes.single(inbound.path)
        return path.hasPrefix("\(route)/") ? String(path.dropFirst(route.utf8.count)) : path
    }

    private func read(_ inbound: HTTPInbound) throws(NextcloudError) -> NextcloudInbound {
        try inbound.withBody { (body) throws(NextcloudError) in
            try conversation.read(
                method: inbound.method.rawValue, path: path(of: inbound), query: inbound.query,
                contentType: inbound.header("content-type"), userAgent: inbound.header("user-agent"),
                subscriptionKey: subscriptionKey(inbound), from: inbound.client, body: body)
        }
    }

    /// Where there is one and no more.
    private func subscriptionKey(_ inbound: HTTPInbound) -> Secret? {
        guard inbound.headerCount(Self.subscriptionField) == 1 else { return nil }
        return inbound.header(Self.subscriptionField).map { Secret($0.utf8) }
    }
}
