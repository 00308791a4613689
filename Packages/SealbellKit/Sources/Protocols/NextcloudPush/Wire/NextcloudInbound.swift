package import PushModel
import WireFormats

/// A notifications call: a small one is read at once, a large one by the relay's role, away from the event
/// loops.
package enum NotificationCall: Sendable {
    case read(NotificationBatch)
    case unread(Secret, isJSON: Bool)

    init(_ body: UnsafeRawBufferPointer, isJSON: Bool) throws(NextcloudError) {
        if body.count > NextcloudLimits.bytesOnLoop {
            self = .unread(Secret(copying: body), isJSON: isJSON)
        } else {
            self = .read(try NotificationBatch(parsing: body, isJSON: isJSON))
        }
    }

    /// What it takes of its client's allowance: one unit, and one for each ``NextcloudLimits/bytesOnLoop``
    /// of a large call, which is looked up and verified before anybody has shown a credential.
    var units: Int {
        switch self {
        case .read: 1
        case .unread(let body, _): 1 + body.count / NextcloudLimits.bytesOnLoop
        }
    }

    /// - Throws: what ``NotificationBatch`` throws.
    package func batch() throws(NextcloudError) -> NotificationBatch {
        switch self {
        case .read(let batch): batch
        case .unread(let body, let isJSON):
            try body.reveal { (body) throws(NextcloudError) in
                try NotificationBatch(parsing: body, isJSON: isJSON)
            }
        }
    }
}

/// A request that has been read but is not yet believed.
package struct NextcloudInbound: Sendable {
    package enum Call: Sendable {
        case register(RegistrationForm)
        case unregister(OwnershipForm)
        case notify(NotificationCall)
    }

    package let call: Call
    /// ``NextcloudPath/prefix``.
    package let prefix: String?
    /// What the `User-Agent` tells.
    package let client: ClientHint
    /// `X-Nextcloud-Subscription-Key`.
    package let subscriptionKey: Secret?
    /// Who asks, by address; `nil`: somebody in this process.
    package var source: ClientKey?
    /// It was judged before, and others have changed its device meanwhile: what it costs is paid.
    package private(set) var isRepeated = false

    package init(
        call: Call, prefix: String? = nil, client: ClientHint = .none, subscriptionKey: Secret? = nil
    ) {
        self.call = call
        self.prefix = prefix
        self.client = client
        self.subscriptionKey = subscriptionKey
    }

    /// Reads one HTTP request. Nothing is looked up.
    ///
    /// - Parameter path: as sent, without query, behind the instance's own route.
    /// - Parameter query: what follows the `?`; a devices call takes fields from there that its body does not
    ///   have.
    /// - Parameter subscriptionKey: the header's value.
    /// - Parameter body: borrowed for the length of the call.
    /// - Throws: `.unknownPath`, `.wrongMethod`, `.bodyTooLarge`, and what the forms throw.
    package static func parse(
        method: String, path: String, query: String? = nil, contentType: String? = nil,
        userAgent: String? = nil, subscriptionKey: Secret? = nil, body: UnsafeRawBufferPointer
    ) throws(NextcloudError) -> NextcloudInbound {
        let known = try known(method, path)
        guard body.count <= known.bodyLimitBytes else { throw NextcloudError(.bodyTooLarge) }
        let isJSON = ContentType.isJSON(contentType)
        let call: Call
        switch known.endpoint {
        case .devices:
            let fields = try DeviceFields(body, isJSON: isJSON, query: query)
            call =
                method == "POST"
                ? .register(try RegistrationForm(fields)) : .unregister(try OwnershipForm(fields))
        case .notifications:
            call = .notify(try NotificationCall(body, isJSON: isJSON))
        }
        return NextcloudInbound(
            call: call, prefix: known.prefix, client: ClientHint(userAgent: userAgent),
            subscriptionKey: subscriptionKey)
    }

    /// Has a call taken in, and again while others change its device between its look-up and its commit: apps
    /// send a registration twice, and the last one is to stand. At each round one call at least gets through.
    ///
    /// - Parameter take: judges the call and commits what follows.
    /// - Throws: `.overloaded` when it was overtaken ``NextcloudLimits/registrationRounds`` times.
    package func taken<Reply>(
        by take: (NextcloudInbound) async throws(NextcloudError) -> Reply
    ) async throws(NextcloudError) -> Reply {
        var call = self
        for _ in 0..<NextcloudLimits.registrationRounds {
            do throws(NextcloudError) { return try await take(call) } catch {
                guard error.code == .overtaken else { throw error }
                call.isRepeated = true
            }
        }
        throw NextcloudError(.overloaded)
    }

    /// Checks what the head of a request shows, so that a body that would be refused in any case gets no
    /// room.
    ///
    /// - Throws: `.unknownPath`, `.wrongMethod`.
    package static func check(method: String, path: String) throws(NextcloudError) {
        _ = try known(method, path)
    }

    private static func known(_ method: String, _ path: String) throws(NextcloudError) -> NextcloudPath {
        guard let known = NextcloudPath(sent: path) else { throw NextcloudError(.unknownPath) }
        guard known.methods.contains(method) else {
            var error = NextcloudError(.wrongMethod)
            error.allowedMethods = known.methods
            throw error
        }
        return known
    }
}
