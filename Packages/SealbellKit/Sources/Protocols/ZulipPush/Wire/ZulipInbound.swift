package import PushModel
import WireFormats

/// A request that has been read but is not yet believed.
package struct ZulipInbound: Sendable {
    package enum Call: Sendable {
        case signUp(SignUpForm)
        case deactivate
        case transfer(TransferForm)
        case verifyChallenge(TransferForm)
        case analyticsStatus
        case analytics(AnalyticsForm)
        case register(RegisterForm)
        case notify(NotifyRequest)
        case staleDevices(StaleForm)
        case legacyNotify(LegacyNotifyRequest)
        /// One token or all of a user's: this relay holds none, whatever the form says.
        case legacyUnregister
        /// Refused, but only after its sender has been authenticated, as deployed relays do it.
        case refused(ZulipError)
    }

    /// `nil` for calls that need none.
    package let credentials: ServerCredentials?
    package let call: Call
    /// Where the caller asked for the references of its pushes; for `notify` alone.
    package var references: PushReferences?

    package init(credentials: ServerCredentials?, call: Call) {
        self.credentials = credentials
        self.call = call
    }

    /// Reads one HTTP request. Nothing is looked up.
    ///
    /// - Parameter path: as sent, without query; more than one leading slash counts as one.
    /// - Parameter place: as ``ZulipPath/init(sent:at:)``.
    /// - Parameter query: what follows the `?`. Deployed relays take a parameter from there that the form
    ///   does not have, and older servers send all of their sign-up so.
    /// - Parameter authorization: the `Authorization` field.
    /// - Parameter body: borrowed for the length of the call.
    /// - Parameter credentials: reads that field.
    /// - Throws: `.unknownPath`, `.wrongMethod`, what ``ServerCredentials`` throws, and for calls without
    ///   credentials what their form throws.
    package static func parse(
        method: String, path: String, at place: Int? = nil, query: String? = nil, authorization: String?,
        body: UnsafeRawBufferPointer,
        credentials read: (String?) throws(ZulipError) -> ServerCredentials = ServerCredentials.read
    ) throws(ZulipError) -> ZulipInbound {
        let known = try known(method, path, place)
        guard known.isAuthenticated else {
            return ZulipInbound(credentials: nil, call: try call(known, query, body))
        }
        let credentials = try read(authorization)
        do throws(ZulipError) {
            return ZulipInbound(credentials: credentials, call: try call(known, query, body))
        } catch {
            return ZulipInbound(credentials: credentials, call: .refused(error))
        }
    }

    /// The caller's credentials; `nil` for calls that need none.
    ///
    /// - Throws: `.unknownPath`, `.wrongMethod`, what ``ServerCredentials`` throws.
    package static func credentials(
        method: String, path: String, authorization: String?,
        credentials read: (String?) throws(ZulipError) -> ServerCredentials = ServerCredentials.read
    ) throws(ZulipError) -> ServerCredentials? {
        guard try known(method, path).isAuthenticated else { return nil }
        return try read(authorization)
    }

    /// Checks what the head of a request shows, in the same order as `parse`, so that a body that would be
    /// refused in any case gets no room.
    ///
    /// - Throws: `.unknownPath`, `.wrongMethod`, what ``ServerCredentials`` throws.
    package static func check(method: String, path: String, authorization: String?) throws(ZulipError) {
        guard try known(method, path).isAuthenticated else { return }
        try ServerCredentials.checkForm(authorization)
    }

    private static func known(
        _ method: String, _ path: String, _ place: Int? = nil
    ) throws(ZulipError) -> ZulipPath {
        guard let known = ZulipPath(sent: path, at: place) else { throw ZulipError(.unknownPath) }
        guard known.methods.contains(method) else {
            var error = ZulipError(.wrongMethod)
            error.allowedMethods = known.methods
            throw error
        }
        return known
    }

    private static func call(
        _ path: ZulipPath, _ query: String?, _ body: UnsafeRawBufferPointer
    ) throws(ZulipError) -> Call {
        guard body.count <= path.bodyLimitBytes else { throw ZulipError(.bodyTooLarge) }
        switch path {
        case .signUp: return .signUp(try SignUpForm(form(body, query)))
        case .deactivate: return .deactivate
        case .transfer: return .transfer(try TransferForm(form(body, query), isVerification: false))
        case .verifyChallenge:
            return .verifyChallenge(try TransferForm(form(body, query), isVerification: true))
        case .analyticsStatus: return .analyticsStatus
        case .analytics: return .analytics(try AnalyticsForm(form(body, query)))
        case .register: return .register(try RegisterForm(form(body, query)))
        case .notify: return .notify(try NotifyRequest(parsing: body))
        case .staleDevices: return .staleDevices(try StaleForm(form(query)))
        case .legacyNotify: return .legacyNotify(try LegacyNotifyRequest(parsing: body))
        case .legacyUnregister, .legacyUnregisterAll: return .legacyUnregister
        case .legacyRegister, .legacyTest: throw ZulipError(.legacyPath)
        }
    }

    /// The query's fields alone.
    private static func form(_ query: String?) throws(ZulipError) -> Form {
        do { return try Form.parse(Array((query ?? "").utf8), fieldLimit: ZulipLimits.formFields) } catch {
            throw ZulipError(.malformedForm)
        }
    }

    /// The body's fields, and behind them in rank the query's.
    private static func form(
        _ body: UnsafeRawBufferPointer, _ query: String?
    ) throws(ZulipError) -> Form {
        do {
            let form = try Form.parse(body, fieldLimit: ZulipLimits.formFields)
            guard let query, !query.isEmpty else { return form }
            let fallback = try Form.parse(Array(query.utf8), fieldLimit: ZulipLimits.formFields)
            // Of doubles the last counts.
            return Form(fallback.fields + form.fields)
        } catch {
            throw ZulipError(.malformedForm)
        }
    }
}
