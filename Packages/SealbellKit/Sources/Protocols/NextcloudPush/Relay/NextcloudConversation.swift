package import PushModel

/// What the relay says to one HTTP request around the role: who may ask, what is asked, and which refusals
/// are read by people.
package struct NextcloudConversation: Sendable {
    private let policy: NextcloudPolicy

    package init(_ policy: NextcloudPolicy) { self.policy = policy }

    /// Checks what a request's head alone tells, so that no room is given to a body that would be refused
    /// whatever it is: a large one is not read for a server without a key.
    ///
    /// - Parameters:
    ///   - path: as ``NextcloudInbound/parse(method:path:query:contentType:userAgent:subscriptionKey:body:)``
    ///     has it.
    ///   - subscriptionKey: where the head shows one and no more: two would let a proxy and this relay
    ///     believe different ones.
    /// - Throws: `.unknownPath`, `.wrongMethod`, `.wrongSubscriptionKey`.
    package func check(method: String, path: String, subscriptionKey: Secret?) throws(NextcloudError) {
        try NextcloudInbound.check(method: method, path: path)
        try check(path, subscriptionKey)
    }

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - source: who asks.
    ///   - body: borrowed for the length of the call.
    /// - Throws: `.wrongSubscriptionKey` before anything is read, and what
    ///   ``NextcloudInbound/parse(method:path:query:contentType:userAgent:subscriptionKey:body:)`` throws.
    package func read(
        method: String, path: String, query: String?, contentType: String?, userAgent: String?,
        subscriptionKey: Secret?, from source: ClientKey, body: UnsafeRawBufferPointer
    ) throws(NextcloudError) -> NextcloudInbound {
        try check(path, subscriptionKey)
        var call = try NextcloudInbound.parse(
            method: method, path: path, query: query, contentType: contentType, userAgent: userAgent,
            subscriptionKey: subscriptionKey, body: body)
        call.source = source
        return call
    }

    private func check(_ path: String, _ subscriptionKey: Secret?) throws(NextcloudError) {
        guard !Self.isPush(path) || policy.admits(subscriptionKey) else {
            throw NextcloudError(.wrongSubscriptionKey)
        }
    }

    /// Whether servers ask there. They write a plain text into their admin's log, and of JSON only that no
    /// reason was given; so their refusals are sentences.
    package static func isPush(_ path: String) -> Bool {
        path.hasSuffix("/\(NextcloudPath.Endpoint.notifications)")
    }
}
