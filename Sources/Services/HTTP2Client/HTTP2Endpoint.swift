import NIOSSL
package import PushModel

/// Why a way to a push service cannot be built, or a connection did not come up.
package typealias HTTP2Error = CodedError<HTTP2ErrorCode>

package enum HTTP2ErrorCode: String, PushErrorCode {
    /// The configured URL is no `https://host[:port]`.
    case malformedURL
    /// The configured CA file holds no PEM certificate.
    case badCertificateFile
    /// Name look-up, TCP or the proxy failed.
    case unreachable
    /// The TLS handshake failed: certificate, name or version.
    case tlsFailed
    /// The peer did not choose `h2`.
    case notHTTP2
    /// No SETTINGS within the connect deadline.
    case noSettings
    /// The peer broke RFC 9113.
    case protocolViolation
    /// Nothing came back to a PING.
    case silent

    package var sentence: String {
        switch self {
        case .malformedURL: "Give the push service's address as https://host or https://host:port."
        case .badCertificateFile: "Give a file with at least one PEM certificate."
        case .unreachable: "The push service cannot be reached. Look at name service, firewall and proxy."
        case .tlsFailed: "The TLS handshake failed. Look at the CA file and the host's name."
        case .notHTTP2: "The host does not speak HTTP/2. Look at the address and at the proxy."
        case .noSettings: "The host did not begin to speak HTTP/2 in time."
        case .protocolViolation: "The host broke the rules of HTTP/2."
        case .silent: "The host stopped answering."
        }
    }
}

/// Where requests go: one authority, the trust in its certificate, and the proxy on the way, if any.
package struct HTTP2Endpoint: Sendable {
    /// An HTTP proxy that is asked to CONNECT (RFC 9110 §9.3.6). Loopback or private hosts mostly; plain TCP.
    package struct Proxy: Sendable {
        package var host: String
        package var port: Int
        /// The value of `proxy-authorization`, if the proxy wants one.
        package var authorization: String?

        package init(host: String, port: Int, authorization: String? = nil) {
            self.host = host
            self.port = port
            self.authorization = authorization
        }
    }

    package let host: String
    package let port: Int
    package var proxy: Proxy?
    let trust: NIOSSLTrustRoots

    /// - Parameters:
    ///   - url: `https://host` or `https://host:port`; a path of `/` alone is allowed.
    ///   - certificates: PEM text of the CAs to trust; `nil`: the system's.
    /// - Throws: `.malformedURL`, `.badCertificateFile`.
    package init(url: String, certificates: [UInt8]? = nil, proxy: Proxy? = nil) throws(HTTP2Error) {
        guard let authority = Self.authority(of: url) else { throw HTTP2Error(.malformedURL) }
        host = authority.host
        port = authority.port
        self.proxy = proxy
        trust = try Self.trust(in: certificates)
    }

    /// - Throws: `.badCertificateFile`.
    private static func trust(in certificates: [UInt8]?) throws(HTTP2Error) -> NIOSSLTrustRoots {
        guard let certificates else { return .default }
        // The parser's own words are dropped: they may quote the file.
        guard let parsed = try? NIOSSLCertificate.fromPEMBytes(certificates), !parsed.isEmpty else {
            throw HTTP2Error(.badCertificateFile)
        }
        return .certificates(parsed)
    }

    /// The value of `:authority`: the port is named unless it is 443.
    package var authority: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == 443 ? name : "\(name):\(port)"
    }

    /// The client side's TLS: 1.2 or newer, ALPN `h2`, full verification.
    static func tlsConfiguration(_ trust: NIOSSLTrustRoots) -> TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["h2"]
        configuration.trustRoots = trust
        return configuration
    }

    private static func authority(of url: String) -> (host: String, port: Int)? {
        guard url.hasPrefix("https://") else { return nil }
        var rest = url.dropFirst("https://".count)
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard !rest.isEmpty, rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !rest.contains(where: { "/?#@\\".contains($0) })
        else { return nil }
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            let host = String(rest[rest.index(after: rest.startIndex)..<end])
            return split(host, rest[rest.index(after: end)...])
        }
        let end = rest.firstIndex(of: ":") ?? rest.endIndex
        return split(String(rest[..<end]), rest[end...])
    }

    private static func split(_ host: String, _ tail: Substring) -> (host: String, port: Int)? {
        guard !host.isEmpty else { return nil }
        if tail.isEmpty { return (host, 443) }
        guard tail.first == ":", let port = Int(tail.dropFirst()), (1...65535).contains(port) else {
            return nil
        }
        return (host, port)
    }
}
