package import PushModel

/// What the relay says to one HTTP request around the role: what its head alone tells, who has to prove
/// themselves before they are read, what is asked, and how a refusal is worded.
///
/// One reference, and no step allocates: each stands on the way of a push.
package struct ZulipConversation: Sendable {
    private let relay: ZulipRelay

    package init(with relay: ZulipRelay) { self.relay = relay }

    // MARK: Before the body is read

    /// Checks what a request's head alone tells, so that no room is given to a body that would be refused
    /// whatever it is.
    ///
    /// - Parameter fields: how many `Authorization` fields there are.
    /// - Throws: what ``check(fields:)`` and ``ZulipInbound/check(method:path:authorization:)`` throw.
    package static func check(
        method: String, path: String, authorization: String?, fields: Int
    ) throws(ZulipError) {
        try check(fields: fields)
        try ZulipInbound.check(method: method, path: path, authorization: authorization)
    }

    /// Two credentials would let a proxy and this relay believe different ones.
    ///
    /// - Throws: `.malformedAuthorization`.
    package static func check(fields: Int) throws(ZulipError) {
        if fields > 1 { throw ZulipError(.malformedAuthorization) }
    }

    /// Whether callers prove themselves (``prove(method:path:authorization:)``) before they are read. A large
    /// body is not read for a stranger: reading the largest takes a core half a second. With a small one it
    /// is cheaper to look up sender, realm and devices together.
    package static func isProvedFirst(bodyBytes: Int) -> Bool { bodyBytes > ZulipLimits.formBodyBytes }

    /// Judges who asks. Calls that need no credentials pass, and all do while the store is out, which proves
    /// nobody a stranger: a `notify` waits for it once it is read.
    ///
    /// - Throws: what ``ZulipInbound/credentials(method:path:authorization:credentials:)`` throws, and what
    ///   the role does for such credentials.
    package func prove(method: String, path: String, authorization: String?) async throws(ZulipError) {
        guard
            let credentials = try ZulipInbound.credentials(
                method: method, path: path, authorization: authorization,
                credentials: relay.credentials(shownBy:))
        else { return }
        do throws(ZulipError) { try await relay.prove(credentials) } catch {
            guard error.isOverloaded else { throw error }
        }
    }

    // MARK: Reading

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - place: as ``ZulipPath/init(sent:at:)``.
    ///   - wantsReferences: the caller asks for the references of its pushes.
    ///   - body: borrowed for the length of the call.
    /// - Throws: what ``ZulipInbound/parse(method:path:at:query:authorization:body:credentials:)`` throws.
    package func read(
        method: String, path: String, at place: Int?, query: String?, authorization: String?,
        wantsReferences: Bool, body: UnsafeRawBufferPointer
    ) throws(ZulipError) -> ZulipInbound {
        var inbound = try ZulipInbound.parse(
            method: method, path: path, at: place, query: query, authorization: authorization, body: body,
            credentials: relay.credentials(shownBy:))
        if wantsReferences, case .notify = inbound.call { inbound.references = PushReferences() }
        return inbound
    }

    // MARK: Refusing

    /// What is counted of a refusal besides.
    package static func note(of error: ZulipError) -> NoteCode? {
        error.code == .legacyPath ? NoteCode("zulip.legacy-call") : nil
    }
}
