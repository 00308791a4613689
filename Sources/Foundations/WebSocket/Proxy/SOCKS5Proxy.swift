package import PushModel

/// A SOCKS5 proxy (RFC 1928), Tor's among them. Names are looked up by the proxy alone: the target goes to it
/// as a name, and nothing here asks a resolver for it.
package struct SOCKS5Proxy: Sendable {
    /// Username and password (RFC 1929), 1 to 255 bytes each.
    package struct Credentials: Sendable {
        package let username: Secret
        package let password: Secret

        /// `nil` when one is empty or too long.
        package init?(username: Secret, password: Secret) {
            guard (1...255).contains(username.count), (1...255).contains(password.count) else { return nil }
            self.username = username
            self.password = password
        }

        /// Credentials that nobody used before. Tor gives streams of different credentials circuits of their
        /// own (`IsolateSOCKSAuth`, on by default), so that they cannot be linked by their exit.
        package static func isolated(_ world: World) -> Credentials {
            let word = { () -> Secret in
                Secret(world.randomBytes(16).map { 0x61 + $0 % 26 })
            }
            return Credentials(fresh: word(), word())
        }

        private init(fresh username: Secret, _ password: Secret) {
            self.username = username
            self.password = password
        }
    }

    /// The proxy's own host, a name of our configuration or an address. It is looked up here.
    package var host: String
    package var port: Int
    /// With credentials no other method is offered, so that isolation cannot be lost without notice.
    package var credentials: Credentials?

    package init(host: String, port: Int, credentials: Credentials? = nil) {
        self.host = host
        self.port = port
        self.credentials = credentials
    }
}
