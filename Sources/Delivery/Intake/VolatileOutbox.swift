import PushModel
import Synchronization

/// The outbox of pushes that must never reach a disk: a count. The pushes themselves are in their lanes'
/// memory only; nothing is sealed or written, and a process that ends owes nothing.
final class VolatileOutbox: Sendable {
    private struct State {
        var owed = 0
        /// Each instance has one turn in a lane's rounds, under a name that no other origin has.
        var origins: [ConfiguredName: Digest16] = [:]
        /// Address → side of its pair of lanes, for apps that learn it.
        var sides: [Int: LanePair.Side] = [:]
        var learned = Fifo<Int>()
    }

    private let state = Mutex(State())
    private let limits: DeliveryLimits
    private let world: World

    init(limits: DeliveryLimits, world: World) {
        self.limits = limits
        self.world = world
    }

    var owed: Int { state.withLock(\.owed) }

    /// Makes room for so many more; how many there is room for.
    func take(_ count: Int) -> Int {
        state.withLock { state in
            let taken = min(count, limits.volatilePushes - state.owed)
            state.owed += taken
            return taken
        }
    }

    func end(_ count: Int) { state.withLock { $0.owed -= count } }

    func id(at now: UnixTime) -> PushID { PushID(at: now, random: world.random(), world.random()) }

    func origin(of instance: ConfiguredName) -> Digest16 {
        state.withLock { state in
            if let origin = state.origins[instance] { return origin }
            let origin = Digest16(high: world.random(), low: world.random())
            // Bounded by the instances that configurations name.
            state.origins[instance] = origin
            return origin
        }
    }

    func side(app: ConfiguredName, address: Secret) -> LanePair.Side? {
        let key = Self.key(app, address)
        return state.withLock { $0.sides[key] }
    }

    /// Remembers where an address was accepted; the oldest memory makes room.
    func learn(_ side: LanePair.Side, app: ConfiguredName, address: Secret) {
        let key = Self.key(app, address)
        state.withLock { state in
            guard state.sides.updateValue(side, forKey: key) == nil else { return }
            state.learned.append(key)
            guard state.learned.count > limits.volatileEnvironments else { return }
            if let oldest = state.learned.popFirst() { state.sides[oldest] = nil }
        }
    }

    /// The process's own seeded hash, from which another process cannot find the address.
    private static func key(_ app: ConfiguredName, _ address: Secret) -> Int {
        var hasher = Hasher()
        hasher.combine(app)
        address.reveal { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
