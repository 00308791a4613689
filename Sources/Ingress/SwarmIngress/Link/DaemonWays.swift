import Dialling
import PushModel

/// The addresses of a chain daemon that was given by name, in the order in which they are tried. ZeroMQ would
/// look the name up by itself and use only the first address.
struct DaemonWays {
    /// `oxend.example.org` and 22029.
    private struct Name: Hashable {
        let host: String
        let port: Substring
    }

    private let dialling: DialOptions
    private let span: Duration
    private var name: Name?
    private var lookUp: LookUp?
    private var rest: [IPAddress] = []
    /// How many addresses the name has.
    private var count = 0
    /// How often all of them have been tried in vain since the last connection.
    private var rounds = 0
    /// The address that is being tried, or is connected.
    private var current: IPAddress?
    /// The last address that was connected.
    private var good: IPAddress?

    init(_ limits: SwarmLimits) {
        dialling = limits.dialling
        span = limits.dialDeadline
    }

    /// How long the address that is tried now may take: a short while at first, and twice as long with each
    /// round that was in vain, up to its part of the whole. So a dead address is soon given up, and a slow
    /// one is reached in the end, whatever their order.
    var share: Duration {
        let part = span / max(1, count)
        return count < 2 ? part : dialling.limits.silence.doubled(rounds, atMost: part)
    }

    /// Begins to look an endpoint's name up.
    ///
    /// - Parameter found: called on any thread.
    /// - Returns: false when the endpoint has no name: a local socket, or an address.
    mutating func begin(_ endpoint: String, _ found: @escaping @Sendable ([IPAddress]) -> Void) -> Bool {
        end()
        guard let name = Self.name(in: endpoint) else { return false }
        self.name = name
        let lookUp = LookUp(name.host, found)
        self.lookUp = lookUp
        dialling.resolver.begin(lookUp)
        return true
    }

    /// Takes the answer, unless it is no longer waited for.
    mutating func take(_ found: [IPAddress]) {
        guard lookUp != nil else { return }
        lookUp = nil
        rest = DialOrder.order(found, preferred: good, limit: dialling.limits.addresses)
        count = rest.count
        // An address that was tried last and never connected comes after the others.
        if let current, current != good, let at = rest.firstIndex(of: current) {
            rest.append(rest.remove(at: at))
        }
    }

    /// The endpoint to try next; `nil`: all have been tried.
    mutating func next() -> String? {
        guard let name else { return nil }
        guard !rest.isEmpty else {
            rounds += 1
            return nil
        }
        let address = rest.removeFirst()
        current = address
        return address.isV4 ? "tcp://\(address.text):\(name.port)" : "tcp://[\(address.text)]:\(name.port)"
    }

    /// The daemon has greeted us at the address that was tried last.
    mutating func stood() {
        good = current
        (rest, rounds) = ([], 0)
    }

    /// The answer is no longer waited for.
    mutating func end() {
        if let lookUp {
            lookUp.cancel()
            dialling.resolver.leave(lookUp)
        }
        (lookUp, rest) = (nil, [])
    }

    private static func name(in endpoint: String) -> Name? {
        guard endpoint.hasPrefix("tcp://") else { return nil }
        let place = endpoint.dropFirst("tcp://".count)
        // A semicolon separates our own address from the peer's (zmq_tcp(7)); then both are addresses.
        guard let colon = place.lastIndex(of: ":"), !place.contains(";"), !place.hasPrefix("[") else {
            return nil
        }
        let host = String(place[..<colon])
        return IPAddress(host) == nil ? Name(host: host, port: place[place.index(after: colon)...]) : nil
    }
}
