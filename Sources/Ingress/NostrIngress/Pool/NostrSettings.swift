package import MarmotPublishing
package import Secp256k1Keys
package import WebSocket

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
