import PushModel

/// Where oxend listens for RPC over ZeroMQ: `ipc:///run/oxend.sock` or `tcp://127.0.0.1:22029`.
enum OxendAddress: Sendable, Hashable {
    /// Absolute path of a local socket.
    case local(path: String)
    case network(host: String, port: Int)

    /// A local socket's name has a bound in the system (`sun_path`).
    private static let pathBytes = 107

    init?(_ text: String) {
        if text.hasPrefix("ipc://") {
            let path = String(text.dropFirst("ipc://".count))
            guard path.hasPrefix("/"), path.utf8.count > 1, path.utf8.count <= Self.pathBytes else {
                return nil
            }
            self = .local(path: path)
        } else if text.hasPrefix("tcp://") {
            let rest = text.dropFirst("tcp://".count)
            // A port is needed: oxend has no usual one. The rest is as in any URL.
            guard let colon = rest.lastIndex(of: ":"), !rest.hasSuffix("]"), !rest.contains("/"),
                decimal(rest[rest.index(after: colon)...]) != nil, let base = HTTPSBase("https://\(rest)")
            else { return nil }
            self = .network(host: base.host, port: base.port)
        } else {
            return nil
        }
    }

    /// Whether nobody outside this machine hears what is said to it.
    var isOnThisMachine: Bool {
        switch self {
        case .local: true
        case .network(let host, _): isLoopbackHost(host)
        }
    }

    /// As libzmq takes it.
    var text: String {
        switch self {
        case .local(let path): "ipc://\(path)"
        case .network(let host, let port): "tcp://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }
    }

    var peer: PeerAddress {
        switch self {
        case .local(let path): PeerAddress(socket: path)
        case .network(let host, let port): PeerAddress(host: host, port: port, isPlain: true)
        }
    }
}
