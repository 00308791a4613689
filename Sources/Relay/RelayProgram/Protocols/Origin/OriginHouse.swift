import Delivery
import HTTPIngress
import NextcloudPush
import OriginServer
import PushModel
import Synchronization
import Uplink
import ZulipPush

/// An origin as it runs: its users, doors and lanes. It stays over a reload that leaves its section as it
/// was.
final class OriginHouse: Sendable {
    let settings: OriginSection
    let name: ConfiguredName
    let people: OriginPeople
    let polls: EventPolls
    let users: ZulipUsers
    let notifier: ZulipNotifier
    let door: ZulipDoor
    let cloud: NextcloudUsers
    private let cloudDoor: NextcloudDoor
    let cloudNotifier: NextcloudNotifier
    private let applications: Held<Secret?>
    private let registry: any Registry
    private let delivery: DeliveryService
    let lanes: OwnLanes
    let clock: OriginClock
    let upkeep: OriginUpkeep
    let troubles: OriginTroubles
    let world: World

    /// - Throws: `CommandFailure` that names the file of the credentials.
    init(
        _ name: ConfiguredName, _ settings: OriginSection, on context: HostingContext
    ) throws(CommandFailure) {
        self.name = name
        self.settings = settings
        world = context.world
        delivery = context.delivery
        let credentials = Held(try OriginCredentials.read(settings.credentialsFile)?.origin)
        let space = OriginSpace(name)
        people = OriginPeople(space, context.registry, context.world)
        let web: any WebFetch =
            switch settings.relay {
            case nil: RelayFaceFetch(context.neighbours, others: context.web)
            case let relay?: relay.authorityFile.map(context.webTrusting) ?? context.web
            }
        let server = settings.relay?.url ?? RelayFaceFetch.server
        let (events, troubles) = (context.events, OriginTroubles(context.world))
        self.troubles = troubles
        let zulip = ZulipOriginContext(
            space: space, people: people, registry: context.registry, intake: context.delivery.intake,
            world: context.world, relay: server, origin: { credentials.value },
            alert: { alert, realm in
                troubles.note(alert, of: realm)
                events.note("origin alert", [(.code, ErrorCode(alert: alert))])
            })
        var facts = ZulipOriginSettings(version: OriginCredentials.version)
        facts.profiles = settings.profiles
        facts.requiresEncryption = settings.requiresEncryption
        facts.times = settings.times
        facts.devicesPerUser = settings.limits.devicesPerUser
        facts.queuesPerUser = settings.limits.queuesPerUser
        facts.eventsPerQueue = settings.limits.eventsPerQueue
        facts.waitingPolls = settings.limits.waitingPolls
        polls = EventPolls(facts, context.world)
        users = ZulipUsers(zulip, facts, polls: polls)
        notifier = ZulipNotifier(users)
        door = ZulipDoor(users, notifier)
        registry = context.registry
        applications = Held(try Self.token(settings))
        let staleLists = StaleLists(users)
        let cloud = NextcloudUsers(
            NextcloudOriginContext(
                space: space, people: people, registry: context.registry, intake: context.delivery.intake,
                world: context.world, url: settings.url,
                origin: NextcloudOrigin(
                    NextcloudOrigin.Settings(localProxies: settings.allowsLocalProxies ? .allowed : .refused))
            ))
        self.cloud = cloud
        cloudDoor = NextcloudDoor(cloud)
        cloudNotifier = NextcloudNotifier(cloud)
        lanes = Self.lanes(
            name, web, OriginOffice(relay: ZulipOffice(users, notifier, staleLists), proxies: cloud),
            context.world)
        upkeep = OriginUpkeep(
            users, settings.staleList ? staleLists : nil, web: web, credentials: credentials,
            file: settings.credentialsFile)
        clock = OriginClock(polls, upkeep, context.world, context.journal)
    }

    /// The digest of the applications' token.
    private static func token(_ settings: OriginSection) throws(CommandFailure) -> Secret? {
        try settings.applicationTokenFile.map { (file) throws(CommandFailure) in
            ApplicationDoor.digest(of: try CredentialCache.read(file).trimmed)
        }
    }

    /// Reads its files again, at a reload.
    ///
    /// - Throws: what is wrong with one; those that are in force stay.
    func readFiles() throws(CommandFailure) {
        let token = try Self.token(settings)
        try upkeep.readCredentials()
        applications.value = token
    }

    /// What stands behind the origin's listener.
    var faces: [any HTTPFace] {
        guard let applications = applications.value else { return [door, cloudDoor] }
        return [
            door, cloudDoor,
            ApplicationDoor(
                OriginSpace(name), token: applications, origin: self, registry: registry,
                perMinute: settings.limits.notifyPerMinute, world: world)
        ]
    }

    private static func lanes(
        _ name: ConfiguredName, _ web: any WebFetch, _ office: some UplinkOffice, _ world: World
    ) -> OwnLanes {
        var specs: [DeliveryService.LaneSpec] = []
        var apps: [AppDirectory.App] = []
        for (kind, lane) in OriginSection.lanes(of: name) {
            specs.append(
                DeliveryService.LaneSpec(
                    UplinkProvider(lane: lane, web: web, office: office, world: world),
                    credential: Credential()))
            apps.append(AppDirectory.App(name: lane.app, outlets: [UplinkOutlet(kind)]))
        }
        return OwnLanes(specs: specs, directory: AppDirectory.Instance(name: name, apps: apps))
    }

    /// Tries at once all registrations that wait.
    ///
    /// - Returns: how many are owed.
    func retryRegistrations() -> Int {
        let lanes = OriginSection.lanes(of: name).filter { $0.kind == .registration }.map(\.lane)
        let owed = laneSnapshots.filter { lanes.contains($0.lane) }
            .reduce(0) { $0 + $1.inMemory + $1.parked + $1.inFlight }
        for lane in lanes { delivery.hurry(lane) }
        return owed
    }

    /// What each of its lanes has heard last.
    var laneSnapshots: [LaneSnapshot] {
        let own = Set(OriginSection.lanes(of: name).map(\.lane))
        return delivery.snapshot().filter { own.contains($0.lane) }
    }
}

extension ErrorCode {
    fileprivate init(alert: ZulipAlert) {
        switch alert {
        case .registrationExpired: self.init("registration-expired")
        case .registrationRefused: self.init("registration-refused")
        case .staleList: self.init("origin-stale-list")
        }
    }
}
