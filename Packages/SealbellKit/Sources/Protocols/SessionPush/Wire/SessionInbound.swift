/// What the relay receives: parsed and bounded, not yet verified.
package enum SessionInbound: Sendable {
    /// How a call arrived: callers that come through the storage network all share a few addresses.
    package enum Way: Sendable, Hashable { case plain, onion }

    case subscribe(SubscribeForm, by: Way)
    case unsubscribe(UnsubscribeForm, by: Way)
    /// A message, and the revision after which the account's rows are read: 0 for all of them.
    case notified(StorageNotice, after: UInt64 = 0)
}

/// Paths of the front end (§3).
package enum SessionEndpoint: String, Sendable, Hashable, CaseIterable {
    case subscribe = "/subscribe"
    case unsubscribe = "/unsubscribe"
    case onion = "/oxen/v4/lsrpc"

    package static let methods = ["POST"]

    package var bodyLimitBytes: Int {
        switch self {
        case .subscribe, .unsubscribe: SessionLimits.bodyBytes
        case .onion: SessionLimits.onionBodyBytes
        }
    }

    /// Checks what can be checked from a request's head alone.
    ///
    /// - Parameter path: without query, and without the instance's own route in front.
    /// - Throws: `.unknownPath`, `.wrongMethod`.
    package static func find(
        method: String, path: String, in known: [SessionEndpoint] = Self.allCases
    ) throws(SessionError) -> SessionEndpoint {
        guard let endpoint = known.first(where: { $0.rawValue == path }) else {
            throw SessionError(.unknownPath)
        }
        guard methods.contains(method.uppercased()) else {
            var error = SessionError(.wrongMethod)
            error.allowedMethods = methods
            throw error
        }
        return endpoint
    }
}
