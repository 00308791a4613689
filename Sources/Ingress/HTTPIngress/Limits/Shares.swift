package import PushModel

/// How much of a listener is in use, in all and by each client: connections, and bytes of bodies.
///
/// A body's first 64 KiB are small and the rest is large; see ``IngressLimits/bufferedBytes``. Only clients
/// that use something are remembered, so the table has at most as many rows as there are connections and
/// requests.
package struct Shares {
    package enum Grant { case granted, clientFull, full }

    struct Held {
        var connections = 0
        var small = 0
        var large = 0
        var isNothing: Bool { connections == 0 && small == 0 && large == 0 }
    }

    package private(set) var connections = 0
    /// Of all bodies, small and large.
    package private(set) var bytes = 0
    private var large = 0
    private var held: [ClientKey: Held] = [:]
    private let limits: IngressLimits

    package init(_ limits: IngressLimits) { self.limits = limits }

    /// Clients that hold something.
    package var clients: Int { held.count }

    /// Counts a connection in, whatever the answer. It must be counted out; of its client's share only where
    /// it was granted.
    ///
    /// - Parameter client: `nil` for a trusted proxy.
    package mutating func connect(_ client: ClientKey?) -> Grant {
        connections += 1
        guard connections <= limits.connections else { return .full }
        guard let client else { return .granted }
        guard held[client, default: Held()].connections < limits.clientConnections else { return .clientFull }
        held[client, default: Held()].connections += 1
        return .granted
    }

    package mutating func disconnect(_ client: ClientKey?) {
        connections -= 1
        if let client { change(client) { $0.connections -= 1 } }
    }

    /// Takes room for the next bytes of a body, or nothing at all.
    ///
    /// - Parameter received: bytes of the same body that have room already.
    package mutating func take(_ count: Int, behind received: Int, of client: ClientKey) -> Grant {
        let (small, more) = Self.parts(count, behind: received)
        let place = held.index(forKey: client)
        let now = place.map { held.values[$0] } ?? Held()
        // First, because a client above its share does not show that the listener is too small.
        guard small == 0 || now.small + small <= limits.clientSmallBytes,
            more == 0 || now.large + more <= limits.clientLargeBytes
        else { return .clientFull }
        guard bytes + count <= limits.bufferedBytes, large + more <= limits.largeBodiesBytes else {
            return .full
        }
        bytes += count
        large += more
        let then = Held(connections: now.connections, small: now.small + small, large: now.large + more)
        if let place {
            held.values[place] = then
        } else {
            held[client] = then
        }
        return .granted
    }

    /// Whether only the room of large bodies is full.
    package func lacksLarge(_ count: Int) -> Bool { bytes + count <= limits.bufferedBytes }

    /// Gives a body's room back.
    package mutating func release(_ received: Int, of client: ClientKey) {
        let (small, more) = Self.parts(received, behind: 0)
        bytes -= received
        large -= more
        change(client) {
            $0.small -= small
            $0.large -= more
        }
    }

    private static func parts(_ count: Int, behind received: Int) -> (small: Int, large: Int) {
        let small = min(count, max(0, IngressLimits.smallBodyBytes - received))
        return (small, count - small)
    }

    private mutating func change(_ client: ClientKey, _ body: (inout Held) -> Void) {
        guard let index = held.index(forKey: client) else { return }
        body(&held.values[index])
        if held.values[index].isNothing { held.remove(at: index) }
    }
}
