import PushModel
import Synchronization

/// The tolls of each instance, which a reload does not change.
final class InstanceTolls: Sendable {
    private let byInstance = Mutex<[ConfiguredName: Tolls]>([:])
    private let world: World
    private let membership: Membership

    init(_ membership: Membership, _ world: World) {
        self.membership = membership
        self.world = world
    }

    func tolls(of instance: ConfiguredName) -> Tolls {
        byInstance.withLock { byInstance in
            if let tolls = byInstance[instance] { return tolls }
            let tolls = Tolls(world: world, relays: { [membership] in membership.relays })
            byInstance[instance] = tolls
            return tolls
        }
    }

    /// Forgets instances that the configuration no longer names.
    func keep(_ instances: Set<ConfiguredName>) {
        byInstance.withLock { byInstance in byInstance = byInstance.filter { instances.contains($0.key) } }
    }
}
