package import PushModel
package import Secp256k1Keys
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

/// What one instance listens to. A reload replaces it whole.
package struct NostrSettings: Sendable {
    /// At most ``NostrLimits/relays``.
    package var relays: [NostrRelay]
    /// Our keys, the newest first: during a rotation the old ones are listened for too.
    package var keys: [Secp256k1KeyPair]
    package var backlog: NostrBacklog
    /// Through which every relay is reached, by name; each connection has credentials of its own.
    package var proxy: SOCKS5Proxy?
    /// Whether relays are tested with triggers of our own.
    package var testsItself: Bool

    package init(
        relays: [NostrRelay], keys: [Secp256k1KeyPair], backlog: NostrBacklog, proxy: SOCKS5Proxy? = nil,
        testsItself: Bool = false
    ) {
        self.testsItself = testsItself
        self.relays = relays
        self.keys = keys
        self.backlog = backlog
        self.proxy = proxy
    }

    /// Whether connections of the other settings can go on under this one.
    func keepsConnections(of other: NostrSettings) -> Bool {
        keys.map(\.publicKey) == other.keys.map(\.publicKey) && backlog == other.backlog
            && proxy?.host == other.proxy?.host && proxy?.port == other.proxy?.port
    }
}
