package import PushModel

/// Why a listener cannot run as configured.
package struct IngressError: PushError {
    package enum Code: String, Sendable, CaseIterable {
        case bindFailed, tlsUnusable, routeClash, proxyMalformed
    }

    package let code: Code
    /// Names of our own configuration that the fault concerns: the listener, or the two instances of a clash.
    package let names: [ConfiguredName]

    package init(_ code: Code, _ names: [ConfiguredName] = []) {
        self.code = code
        self.names = names
    }

    package var codeText: String { code.rawValue }

    package var sentence: String {
        let who = names.map(\.text).joined(separator: " and ")
        switch code {
        case .bindFailed:
            return "The listener \(who) cannot take its address: another program has it, this machine does "
                + "not have it (yet), or this user may not; sealbell doctor says which."
        case .tlsUnusable:
            return "The listener \(who) cannot use its certificate and key: check that both PEM files are "
                + "readable and belong together."
        case .routeClash:
            return "\(who) want the same path on one listener: serve them on listeners of their own."
        case .proxyMalformed: return "The listener \(who) has a trusted proxy that is no IP address or block."
        }
    }
}
