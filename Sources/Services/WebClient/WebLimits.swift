/// Bounds of rare HTTPS requests and of those to this machine, of each process.
package enum WebLimits {
    /// Longer than any endpoint that the push services give out.
    static let urlBytes = 4096
    /// Fetches at one time. They are rare; more means a fault that must not eat sockets.
    static let fetches = 64
    /// The same for hosts of peers' choice, counted apart: a peer whose host is slow keeps nobody's token and
    /// no alert waiting. They come one for each transfer of a host name, which nobody does twice a year.
    static let peerFetches = 16
    /// Addresses of one host, or ways to it through a proxy's, that are tried within the deadline: two of
    /// each family.
    static let addresses = 4
    /// Between two attempts of which none has a connection that stands. RFC 8305 §5 has 250 ms for TCP alone;
    /// an attempt here is TLS too, which takes two more round trips.
    package static let attemptDelay = Duration.milliseconds(500)
    /// Below it live other services (mail, shells, databases) that a peer's URL has no business to reach.
    static let firstFreePort = 1024
    /// Servers elsewhere whose connections are kept: two for each of more instances than an operator has.
    /// Further ones are called over a new connection each time.
    static let keptServers = 32
    /// Connections to one server that are kept: as many calls at one time; further ones wait for one.
    static let keptConnections = 8
    /// How long such a connection is kept without a call: servers end theirs after ten seconds or more, and
    /// one that both ends close at once costs a call.
    static let keptIdleSeconds: Int64 = 5
}
