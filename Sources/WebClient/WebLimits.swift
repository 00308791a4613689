/// Bounds of rare HTTPS requests, of each process.
enum WebLimits {
    /// Longer than any endpoint that the push services give out.
    static let urlBytes = 4096
    /// Fetches at one time. They are rare; more means a fault that must not eat sockets.
    static let fetches = 64
    /// Addresses of one host that are tried in turn within the deadline.
    static let addresses = 3
    /// For one TCP connection, so that a dead address leaves time for the next.
    static let connectSeconds: Int64 = 5
    /// Below it live other services (mail, shells, databases) that a peer's URL has no business to reach.
    static let firstFreePort = 1024
}
