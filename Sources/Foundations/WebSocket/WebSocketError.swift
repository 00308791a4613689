import PushModel

/// Why a WebSocket did not come up, or ended.
package struct WebSocketError: PushError {
    package enum Code: String, Sendable, CaseIterable {
        /// No `ws://` or `wss://` URL, or one with credentials or a fragment.
        case malformedURL
        /// The CA file holds no PEM certificate.
        case badCertificateFile
        /// An onion address without a proxy: its name must never be looked up (RFC 7686 §2).
        case onionNeedsProxy
        /// The name leads to an address that is not public, and only those were to be dialled.
        case forbiddenAddress
        /// Name look-up or TCP failed.
        case unreachable
        /// The proxy refused the credentials or the target, or broke RFC 1928.
        case proxyRefused
        /// The TLS handshake failed: certificate, name or version.
        case tlsFailed
        /// The upgrade was answered with another status than 101.
        case upgradeRefused
        /// The answer to the upgrade breaks RFC 6455 §4.1.
        case badUpgrade
        /// Connecting took too long.
        case connectDeadline
        /// The peer broke RFC 6455.
        case protocolViolation
        /// A text that is not UTF-8.
        case notUTF8
        /// A message above the bound, from the peer or to it.
        case tooLarge
        /// Nothing came back to a PING.
        case silent
        /// The socket ended without a farewell.
        case lost
        /// The connection has ended.
        case closed
        /// Too many senders wait already.
        case overloaded
        /// The peer did not read for too long.
        case writeDeadline
        /// The caller was cancelled.
        case cancelled
    }

    package let code: Code
    /// The status of a refused upgrade.
    package let status: Int?

    package init(_ code: Code, status: Int? = nil) {
        self.code = code
        self.status = status
    }

    package var codeText: String { code.rawValue }

    package var sentence: String {
        switch code {
        case .malformedURL: "Give the address as ws://host[:port][/path] or wss://…."
        case .badCertificateFile: "Give a file with at least one PEM certificate."
        case .onionNeedsProxy: "An onion address is reached through a SOCKS proxy only: configure one."
        case .forbiddenAddress: "The host's name leads to an address that is not public."
        case .unreachable: "The host cannot be reached. Look at name service and firewall."
        case .proxyRefused: "The SOCKS proxy refused. Look at its address, its credentials and its log."
        case .tlsFailed: "The TLS handshake failed. Look at the CA file and the host's name."
        case .upgradeRefused: "The host refused to speak WebSocket under this address."
        case .badUpgrade: "The host's answer is no WebSocket upgrade. Look at the address."
        case .connectDeadline: "The host did not finish connecting in time."
        case .protocolViolation: "The host broke the rules of WebSocket."
        case .notUTF8: "The host sent a text that is not UTF-8."
        case .tooLarge: "A message is larger than is allowed."
        case .silent: "The host stopped answering."
        case .lost: "The connection was closed without a close frame."
        case .closed: "The connection has ended."
        case .overloaded: "Too many messages wait for this connection."
        case .writeDeadline: "The host did not take the message in time."
        case .cancelled: "The caller gave up."
        }
    }
}
