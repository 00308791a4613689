package import PushModel

/// One path of a face, whatever the method: the face answers a wrong method in its protocol's own form.
package struct HTTPRoute: Sendable, Hashable {
    package enum Pattern: Sendable, Hashable {
        /// The whole path.
        case exact(String)
        /// Every path that begins so; the longest prefix wins, and an exact path wins over any prefix.
        case prefix(String)
    }

    package var pattern: Pattern
    /// A longer body is refused before it is read (``IngressRefusal/bodyTooLarge``).
    package var bodyLimitBytes: Int
    /// Comes back in ``HTTPInbound/tag``, so that a face need not compare paths again.
    package var tag: Int
    /// Whether a path with further slashes in front of its first is this route's too, as `//api` is `/api` to
    /// deployed servers. The face sees the path as it was sent.
    package var takesLeadingSlashes: Bool
    /// Whether several slashes count as one anywhere in the path, for an exact pattern: clients join an
    /// address that ends in a slash and a path that begins with one.
    package var takesRepeatedSlashes: Bool

    package init(
        _ pattern: Pattern, bodyLimitBytes: Int, tag: Int = 0, takesLeadingSlashes: Bool = false,
        takesRepeatedSlashes: Bool = false
    ) {
        self.takesRepeatedSlashes = takesRepeatedSlashes
        self.pattern = pattern
        self.bodyLimitBytes = bodyLimitBytes
        self.tag = tag
        self.takesLeadingSlashes = takesLeadingSlashes
    }
}

/// Why the server itself answers, without asking the face for more than the form of the answer.
package enum IngressRefusal: String, Sendable, Hashable, CaseIterable {
    /// The request is no HTTP/1.1, or could be read in two ways.
    case malformed
    case headersTooLarge
    case bodyTooLarge
    /// The head or the body came too slowly.
    case slowSender
    /// Too many requests in flight, or too many bytes of bodies in memory.
    case overloaded
    /// The client has more than its share of the listener: connections, bytes of bodies, or failed calls.
    case clientShare
    case notFound
    case unsupportedVersion
    case unsupportedTransferCoding
    case unsupportedExpectation
    /// The face did not answer in time.
    case noAnswer

    /// The status where the protocol asks for no other.
    package var status: Int {
        switch self {
        case .malformed: 400
        case .headersTooLarge: 431
        case .bodyTooLarge: 413
        case .slowSender: 408
        case .overloaded, .noAnswer: 503
        case .clientShare: 429
        case .notFound: 404
        case .unsupportedVersion: 505
        case .unsupportedTransferCoding: 501
        case .unsupportedExpectation: 417
        }
    }

    package var sentence: String {
        switch self {
        case .malformed: "The request is not well-formed HTTP/1.1."
        case .headersTooLarge: "The request's head is too large."
        case .bodyTooLarge: "The request's body is too large."
        case .slowSender: "The request took too long to arrive."
        case .overloaded: "The server has too much to do; try again later."
        case .clientShare: "This address asks for more than its share; try again later."
        case .notFound: "There is nothing at this path."
        case .unsupportedVersion: "Only HTTP/1.0 and HTTP/1.1 are spoken here."
        case .unsupportedTransferCoding: "Only the chunked transfer coding is understood here."
        case .unsupportedExpectation: "Only 100-continue can be expected here."
        case .noAnswer: "The request could not be answered in time; try again later."
        }
    }
}

/// The network side of one instance: its paths, and an answer to each request.
///
/// The server has bounded size, rate and time of a request before a face sees it. A face bounds what follows:
/// `respond` must end within ``IngressLimits/answer``.
package protocol HTTPFace: Sendable {
    /// The instance's name from the configuration; in error texts and metric labels.
    var name: ConfiguredName { get }
    /// The field in which callers show who they are, in small letters.
    var credentialField: String { get }
    /// Asked once, when a router is built.
    var routes: [HTTPRoute] { get }
    func respond(to inbound: HTTPInbound) async -> HTTPOutbound
    /// Judges a request by its head alone, before a byte of its body gets room: by its method, and by the
    /// presence and form of its credential. It runs on the connection's event loop, so it must not look
    /// anything up. Not asked about bodies of 16 KiB at most, unless their sender waits to be told to go on.
    ///
    /// - Parameter head: with an empty body.
    /// - Returns: the answer that the request gets whatever its body is; `nil`: its body is read.
    func judge(head: HTTPInbound) -> HTTPOutbound?
    /// The server's own refusal in the protocol's form. `tag` is the route's, where one matched.
    func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound
}

extension HTTPFace {
    package var credentialField: String { "authorization" }

    package func judge(head: HTTPInbound) -> HTTPOutbound? { nil }

    package func refuse(_ refusal: IngressRefusal, tag: Int) -> HTTPOutbound { plainRefusal(refusal) }
}

/// The refusal as plain text, where no face is known or the face has no form of its own.
package func plainRefusal(_ refusal: IngressRefusal) -> HTTPOutbound {
    let answer = HTTPOutbound.text(refusal.status, refusal.sentence)
    switch refusal {
    case .overloaded, .noAnswer, .clientShare: return answer.retrying(after: .seconds(1))
    case .malformed, .headersTooLarge, .bodyTooLarge, .slowSender, .notFound, .unsupportedVersion,
        .unsupportedTransferCoding, .unsupportedExpectation:
        return answer
    }
}
