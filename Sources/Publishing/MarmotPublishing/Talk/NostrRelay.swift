package import PushModel
package import WebSocket

/// One inbox relay of a configuration.
package struct NostrRelay: Sendable, Hashable {
    /// As configured: it stands so in the relay list and in authentications, and is dialled so.
    package let url: String
    package let address: WebSocketAddress

    /// - Throws: `.malformedURL`.
    package init(_ url: String) throws(WebSocketError) {
        self.url = url
        address = try WebSocketAddress(url)
    }

    /// For logs and metrics: the host, as far as a configured name may hold it.
    package var name: ConfiguredName? { ConfiguredName(address.host) }
}
