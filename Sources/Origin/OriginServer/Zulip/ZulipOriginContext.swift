package import Delivery
package import PushModel
package import ZulipPush

/// What the Zulip half of an origin needs.
package struct ZulipOriginContext: Sendable {
    package let space: OriginSpace
    package let people: OriginPeople
    package let registry: any Registry
    package let intake: Intake
    package let world: World
    /// The relay's base URL, without a slash at the end.
    package let relay: String
    /// Id and key at the relay; `nil` before the server has signed up.
    package let origin: @Sendable () -> ZulipOrigin?
    /// Called with messages for administrators.
    package let alert: @Sendable (ZulipAlert, _ realm: String) -> Void

    package init(
        space: OriginSpace, people: OriginPeople, registry: any Registry, intake: Intake, world: World,
        relay: String, origin: @escaping @Sendable () -> ZulipOrigin?,
        alert: @escaping @Sendable (ZulipAlert, String) -> Void
    ) {
        self.space = space
        self.people = people
        self.registry = registry
        self.intake = intake
        self.world = world
        self.relay = relay
        self.origin = origin
        self.alert = alert
    }
}

/// The administrator's settings (docs/configuration.md, `origin`).
package struct ZulipOriginSettings: Sendable {
    /// `zulip_version` of ours.
    package var version: String
    package var profiles = Set(ZulipProfile.allCases)
    package var requiresEncryption = false
    package var times = ZulipQueueTimes()
    package var devicesPerUser = ZulipOriginLimits.recordsPerUser
    package var queuesPerUser = ZulipOriginLimits.queuesPerUser
    package var eventsPerQueue = ZulipOriginLimits.eventsPerQueue
    package var waitingPolls = 4_000

    package init(version: String) { self.version = version }
}

/// The system's generator, or a test's.
struct WorldGenerator: RandomNumberGenerator {
    let world: World
    mutating func next() -> UInt64 { world.random() }
}
