/// How the files and sockets that a process may open are divided: those that the relay needs are reserved,
/// and connections at the public listeners share the rest. So a client that takes every place there takes no
/// descriptor from the store, the push services or the operator.
struct DescriptorBudget: Sendable {
    /// Connections at the admin listener: an operator, a monitor, probes, each with some to spare.
    static let adminConnections = 64
    /// Event loops, log, listening sockets, the libraries' own, and connections that are just being turned
    /// away. An idle relay has about forty.
    private static let base = 96
    /// SQLite's readers, its journal and temporary files; or PostgreSQL's connections, the old beside the new
    /// when they are made anew.
    private static let store = 32
    /// Fetches at one time (`WebLimits.fetches`) beside look-ups of names.
    private static let fetches = 80
    /// Connections of a lane (`HTTP2Options`), and as many that are just being closed.
    private static let lane = 16
    /// What a public listener has at least, however little there is: fewer would serve nobody.
    private static let least = 16

    /// Configured, of one public listener.
    private let wanted: Int
    private let ports: Int
    /// `nil`: as many as anybody asks for.
    private let limit: Int?
    private let kept: Int

    init(_ configuration: RelayConfiguration, limit: Int?) {
        wanted = configuration.limits.connections
        ports = max(1, configuration.listeners.count { !$0.isAdmin })
        self.limit = limit
        let lanes = configuration.apps.reduce(0) { $0 + $1.lanes.count }
        let instances = configuration.instances.reduce(0) { $0 + $1.settings.descriptors }
        kept =
            Self.base + Self.store + Self.fetches + Self.adminConnections + lanes * Self.lane
            + instances
    }

    func connections(of listener: ListenerConfiguration) -> Int {
        listener.isAdmin ? min(wanted, Self.adminConnections) : connections
    }

    /// Of one public listener. Where there is less than what is kept, a quarter of all is theirs anyhow.
    private var connections: Int {
        guard let limit else { return wanted }
        return min(wanted, max(Self.least, max(limit - kept, limit / 4) / ports))
    }

    /// What to say when listeners have fewer connections than configured, by a quarter or more: nobody raises
    /// a limit for the last few of twenty thousand.
    var shortage: String? {
        guard let limit, connections < wanted / 4 * 3 else { return nil }
        return "This process may open \(limit) files, of which \(kept) are kept for the rest: a listener "
            + "takes \(connections) connections, not \(wanted). Raise LimitNOFILE (systemd) or ulimit -n to "
            + "\(wanted * ports + kept), or lower limits.connections."
    }
}
