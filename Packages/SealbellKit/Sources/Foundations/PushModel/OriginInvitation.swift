/// An origin that an operator has invited, and that may sign up once.
package struct OriginInvitation: Sendable, Hashable {
    /// A host name without a port.
    package let host: String
    package let expiresAt: UnixTime

    package init(host: String, expiresAt: UnixTime) {
        self.host = host
        self.expiresAt = expiresAt
    }
}
