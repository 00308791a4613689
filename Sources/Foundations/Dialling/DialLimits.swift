/// The bounds of dialling a host, each with its reason.
package struct DialLimits: Sendable, Hashable {
    /// Between two attempts while nobody has taken a connection: what RFC 8305 §5 recommends.
    package var attemptDelay: Duration = .milliseconds(250)
    /// How long an address that has accepted the connection and then says nothing is waited for alone: two
    /// round trips of a handshake, of which one packet is lost and sent again after a second (RFC 6298 §2).
    /// Then the next address is tried beside it.
    package var silence: Duration = .seconds(2)
    /// Addresses of one name that are tried in one dial: four of each family. Large services give out eight
    /// or more of each, which all lead to the same place.
    package var addresses = 8

    package init() {}
}

/// How a name is looked up and its addresses are tried.
package struct DialOptions: Sendable {
    package var limits = DialLimits()
    package var resolver: any HostResolver

    /// - Parameter resolver: instead of the system's, for tests.
    package init(resolver: any HostResolver = SystemResolver.own) { self.resolver = resolver }
}

/// Why no connection was made.
package enum DialFault: Error {
    /// The name has no address, or no name server answers.
    case unresolved
    /// No address took a connection: refused, or without a route.
    case unreachable
    /// The time was up, and no address had taken a connection.
    case late
    /// The time was up, and those that had taken a connection had not spoken as they should.
    case silent
    /// The error of the attempt that came furthest.
    case failed(any Error)
    case cancelled
}
