public import NIOCore
import NIOHTTP1
package import PushModel
import Synchronization

/// The methods that a face may meet. Everything else is `other`.
package enum HTTPVerb: String, Sendable, Hashable, CaseIterable {
    case get = "GET", head = "HEAD", post = "POST", put = "PUT", patch = "PATCH", delete = "DELETE"
    case options = "OPTIONS", other = "OTHER"

    init(_ method: HTTPMethod) {
        switch method {
        case .GET: self = .get
        case .HEAD: self = .head
        case .POST: self = .post
        case .PUT: self = .put
        case .PATCH: self = .patch
        case .DELETE: self = .delete
        case .OPTIONS: self = .options
        default: self = .other
        }
    }
}

/// One whole request: its head was checked and its body is complete and within the route's bound.
///
/// Usable from inline, because members of a type that is not are inlined in no other module.
@usableFromInline
package struct HTTPInbound: Sendable {
    package let method: HTTPVerb
    /// The path as sent, percent-encoding untouched, without the query; always begins with `/`.
    package let path: String
    /// What follows the first `?`, without it.
    package let query: String?
    /// At most the route's ``HTTPRoute/bodyLimitBytes``; empty once it was forgotten.
    @usableFromInline package var body: ByteBuffer { content?.bytes ?? ByteBuffer() }
    /// For rate limits. Behind a trusted proxy it is the client that the proxy names.
    package let client: ClientKey
    /// The address itself is loopback; the admin face opens without a token only then.
    package let isLoopback: Bool
    /// The request came over TLS, to us or to a trusted proxy.
    package let isSecure: Bool
    /// The ``HTTPRoute/tag`` of the route that matched.
    package let tag: Int
    /// When the server answers in the face's place; `nil` for a request that was made by hand, or if only its
    /// head has arrived.
    package let answerBy: ContinuousClock.Instant?

    private let fields: HTTPFields
    /// `nil`: there is none.
    private let content: Content?

    /// Shared by all copies, so that one who has read it can let go of it for all of them.
    private final class Content: Sendable {
        private let held: Mutex<ByteBuffer>

        init(_ bytes: ByteBuffer) { held = Mutex(bytes) }

        var bytes: ByteBuffer { held.withLock { $0 } }

        func forget() { held.withLock { $0 = ByteBuffer() } }
    }

    /// Makes a request by hand, as the server does and as tests of faces do.
    package init(
        _ method: HTTPVerb, path: String, query: String? = nil, headers: [(String, String)] = [],
        body: ByteBuffer = ByteBuffer(), client: ClientKey = ClientKey(0), isLoopback: Bool = false,
        isSecure: Bool = false, tag: Int = 0
    ) {
        self.init(
            method, path: path, query: query, fields: HTTPFields(HTTPHeaders(headers)), body: body,
            client: client, isLoopback: isLoopback, isSecure: isSecure, tag: tag, answerBy: nil)
    }

    init(
        _ method: HTTPVerb, path: String, query: String?, fields: HTTPFields, body: ByteBuffer,
        client: ClientKey, isLoopback: Bool, isSecure: Bool, tag: Int, answerBy: ContinuousClock.Instant?
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        content = body.readableBytes > 0 ? Content(body) : nil
        self.client = client
        self.isLoopback = isLoopback
        self.isSecure = isSecure
        self.tag = tag
        self.answerBy = answerBy
    }

    /// The first value of a field; the name is compared without regard to case. `nil` when there is none.
    package func header(_ name: String) -> String? { fields.first(name) }

    /// How often a field is given: a credential given twice is refused by faces.
    package func headerCount(_ name: String) -> Int { fields.count(name) }

    /// Lets go of the body: a call that waits for a commit, or for a push service, needs it no more. Its
    /// memory is wiped and given back unless somebody else holds it.
    package func forgetBody() { content?.forget() }

    /// Lends the body's bytes for the length of `read`.
    @inlinable
    package func withBody<Result, Failure: Error>(
        _ read: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // NIO's accessor rethrows untyped, so the typed error travels inside a result.
        let outcome: Swift.Result<Result, Failure> = body.withUnsafeReadableBytes { bytes in
            do throws(Failure) { return .success(try read(bytes)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
