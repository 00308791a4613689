package import NIOCore
package import PushModel

/// Checks whether a push service can be reached in the same way as a pool's connections: look-up, addresses,
/// proxy, TLS, name, first frame. No request is sent.
package struct HTTP2Reach: Sendable {
    private let dialer: HTTP2Dialer

    /// - Throws: `.badCertificateFile`.
    package init(_ endpoint: HTTP2Endpoint, options: HTTP2Options = HTTP2Options()) throws(HTTP2Error) {
        dialer = try HTTP2Dialer(endpoint: endpoint, options: options)
    }

    /// - Parameter addresses: those alone, instead of all that the name has: the proxy's where there is one.
    /// - Returns: why it is not reached within the connect deadline; `nil`: it is.
    package func knock(on loop: any EventLoop, addresses: [IPAddress]? = nil) async -> HTTP2Error? {
        await dialer.knock(on: loop, addresses: addresses)
    }
}
