import HTTPIngress
import PushModel

/// Who holds how much of a listener, in any order of what clients may do: as many connections, bodies and
/// bytes as there can be.
let shareTargets: [String: Body] = [
    "listener-shares": { bytes in
        var play = SharePlay()
        for start in stride(from: 0, to: bytes.count - 1, by: 2) {
            play.step(bytes[start], bytes[start + 1])
        }
        play.end()
    }
]

private struct SharePlay {
    private static let limits: IngressLimits = {
        var limits = IngressLimits()
        (limits.connections, limits.clientConnections) = (24, 6)
        return limits
    }()
    /// The longest body that a call may have.
    private static let longest = 16 << 20

    private var shares = Shares(limits)
    /// Bodies under way: whose, and how much of each has room.
    private var bodies: [(client: Int, received: Int)] = []
    /// What each of the clients holds, counted here: beginnings of bodies, and what is beyond.
    private var held = [(small: Int, large: Int)](repeating: (0, 0), count: 8)
    /// Connections, by whom they count.
    private var connections: [ClientKey?] = []

    /// What happens, and to which of eight clients; how much, or which.
    mutating func step(_ kind: UInt8, _ size: UInt8) {
        let client = Int(kind >> 5)
        switch kind & 7 {
        case 0: connect(kind & 8 == 0 ? Self.key(client) : nil)
        case 1 where !connections.isEmpty:
            shares.disconnect(connections.remove(at: Int(size) % connections.count))
        case 2: bodies.append((client, 0))
        case 3 where !bodies.isEmpty: end(bodies.remove(at: Int(size) % bodies.count))
        case 4...7 where !bodies.isEmpty:
            grow(Int(kind >> 3) % bodies.count, ((Int(size) + 1) << 10) << (Int(kind & 3) * 2))
        default: break
        }
        check()
    }

    private static func key(_ client: Int) -> ClientKey { ClientKey(UInt64(client)) }

    private mutating func connect(_ client: ClientKey?) {
        let grant = shares.connect(client)
        let own = connections.count { $0 == client }
        switch grant {
        case .granted:
            precondition(connections.count < Self.limits.connections)
            precondition(client == nil || own < Self.limits.clientConnections)
            connections.append(client)
        case .clientFull:
            precondition(own >= Self.limits.clientConnections, "who has less than a share is let in")
            shares.disconnect(nil)
        case .full:
            precondition(connections.count >= Self.limits.connections)
            shares.disconnect(nil)
        }
    }

    private mutating func grow(_ place: Int, _ count: Int) {
        let body = bodies[place]
        let count = min(count, Self.longest - body.received)
        guard count > 0 else { return }
        guard shares.take(count, behind: body.received, of: Self.key(body.client)) == .granted else { return }
        bodies[place].received += count
        note(body, -1)
        note(bodies[place], 1)
    }

    private mutating func end(_ body: (client: Int, received: Int)) {
        shares.release(body.received, of: Self.key(body.client))
        note(body, -1)
    }

    private mutating func note(_ body: (client: Int, received: Int), _ sign: Int) {
        let small = min(body.received, IngressLimits.smallBodyBytes)
        held[body.client].small += sign * small
        held[body.client].large += sign * (body.received - small)
    }

    private func check() {
        let limits = Self.limits
        let (small, large) = held.reduce((0, 0)) { ($0.0 + $1.small, $0.1 + $1.large) }
        precondition(shares.connections == connections.count)
        precondition(shares.bytes == small + large, "what is counted is what is held")
        precondition(shares.bytes <= limits.bufferedBytes && large <= limits.largeBodiesBytes)
        for own in held {
            precondition(own.large <= limits.clientLargeBytes, "nobody has more than a share")
            precondition(own.small <= limits.clientSmallBytes, "nor of the beginnings")
        }
    }

    /// Everybody leaves.
    mutating func end() {
        for body in bodies { end(body) }
        for client in connections { shares.disconnect(client) }
        precondition(shares.bytes == 0 && shares.connections == 0, "nothing is left behind")
        precondition(shares.clients == 0, "nor anybody remembered")
    }
}
