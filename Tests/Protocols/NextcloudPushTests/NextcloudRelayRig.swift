import Delivery
import DeliveryTesting
import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import WireFormats

/// One answer as a peer would read it.
struct RelayAnswer: Sendable {
    let status: Int
    let retryAfter: String?
    let json: JSONValue

    var unknown: [String]? { json["unknown"]?.array?.compactMap(\.string) }
    var failed: Int64? { json["failed"]?.int64 }
}

/// A relay over a real store, with delivery and push services that answer as the test says.
///
/// Both clocks move when a test moves them; whoever sleeps does so for as long as it asks for.
final class NextcloudRelayRig: Sendable {
    static let instance = configured("cloud-talk")
    static let now = UnixTime(seconds: 1_800_000_000)

    let relay: NextcloudRelay
    let world: World
    /// Tolls that were asked for.
    let tolls = Noted<[Toll]>([])
    /// What was counted.
    let notes = Noted<[NoteCode]>([])
    /// What was done with users' keys, and what look-ups found.
    let work = Noted(RelayWork())
    /// Why instances proved nothing.
    let faults = Noted<[ProofFault]>([])
    private let clock: ManualClock
    private let rig: DeliveryRig
    private let reception: Reception<NextcloudRelay>

    var store: StoreSpy { rig.store }
    var services: StubServices { rig.services }
    var keys: NextcloudRecordNames { relay.keys }

    /// - Parameter meeting: the first so many look-ups are answered together, as those of calls that come
    ///   at one time.
    /// - Parameter tolled: how long a toll must wait; `nil`: it is taken.
    init(
        apps: NextcloudApps, policy: NextcloudPolicy = NextcloudPolicy(), web: (any WebFetch)? = nil,
        rows: Int = 10_000, pushesPerMinute: Int = 0, limits: DeliveryLimits = DeliveryLimits(),
        seed: UInt64 = 1, meeting: Int = 1,
        tolled: @escaping @Sendable (Toll) -> Duration? = { _ in nil }
    ) async throws {
        clock = ManualClock(start: Self.now)
        var world = clock.world(seed: seed)
        world.sleep = { [clock] in
            // Bound: the span that the code under test asks for.
            try await Task.sleep(for: clock.instant.duration(to: $0), clock: .continuous)
        }
        self.world = world
        rig = try await DeliveryRig(
            Self.instance, apps: apps.apps.map { Self.app($0) }, override: NextcloudRelay.override,
            rows: rows, limits: limits, world: world)
        let (tolls, notes, faults, work) = (tolls, notes, faults, work)
        let known = Tolls(world: world)
        relay = try NextcloudRelay(
            instance: Self.instance, apps: apps, policy: policy,
            registry: MeetingRegistry(rig.store, meeting, work), web: web,
            charge: { toll in
                tolls.change { $0.append(toll) }
                return tolled(toll) ?? known.take(toll)
            }, note: { note in notes.change { $0.append(note) } },
            heard: { fault in faults.change { $0.append(fault) } }, work: .counted(work), world: world)
        reception = Reception(
            relay, of: Self.instance, intake: rig.delivery.intake, pushesPerMinute: pushesPerMinute,
            tolls: known, note: { note in notes.change { $0.append(note) } })
    }

    private static func app(_ app: NextcloudApp) -> AppDirectory.App {
        var outlets: [any ServiceOutlet] = []
        if let bundle = app.bundle {
            outlets.append(APNsOutlet(bundles: .listed([bundle]), takesVoIP: app.hasVoIP))
        }
        if app.hasFCM { outlets.append(FCMOutlet(isDefault: false)) }
        return AppDirectory.App(name: app.name, outlets: outlets)
    }

    /// Moves the wall clock alone.
    func advance(by span: Duration) { clock.skewWall(by: span) }
    /// Moves both clocks: what is held is for so much longer.
    func pass(_ span: Duration) { clock.advance(by: span) }

    /// What stands under a name now.
    func record(_ key: RecordKey) async throws -> Record? { try await store.find([key])[0] }
    func pin(_ identifier: DeviceIdentifier) async throws -> NextcloudPin? {
        try await record(keys.pin(identifier)).flatMap { NextcloudPin(body: $0.body) }
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: @Sendable (NextcloudRelayRig) async throws -> Result) async throws
        -> Result
    {
        try await rig.running { try await body(self) }
    }

    /// Runs `body` beside the delivery, with a device of Alice's that is registered.
    static func registered(
        _ body: @Sendable (NextcloudRelayRig, PeerDevice) async throws -> Void
    ) async throws {
        let device = PeerUser.alice.device(1)
        try await make().running { rig in
            await rig.register(device)
            try await body(rig, device)
        }
    }

    /// One HTTP request from bytes to answer.
    func ask(
        _ method: String, _ target: String, contentType: String? = "application/x-www-form-urlencoded",
        userAgent: String? = nil, subscriptionKey: String? = nil, body: [UInt8] = [],
        from client: UInt64 = 1
    ) async -> RelayAnswer {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        do throws(NextcloudError) {
            var inbound = try withBytes(body) { (bytes) throws(NextcloudError) in
                try NextcloudInbound.parse(
                    method: method, path: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : nil,
                    contentType: contentType, userAgent: userAgent,
                    subscriptionKey: subscriptionKey.map { Secret($0.utf8) }, body: bytes)
            }
            inbound.source = ClientKey(client)
            let reply = try await inbound.taken { (call) throws(NextcloudError) in
                try await reception.receive(call, from: ClientKey(client), bytes: body.count)
            }
            return Self.answer(200, reply.body())
        } catch {
            let answer = NextcloudErrorAnswer(error)
            return Self.answer(answer.status, answer.body, answer.headers)
        }
    }

    private static func answer(
        _ status: Int, _ body: [UInt8], _ headers: [(name: StaticString, value: String)] = []
    ) -> RelayAnswer {
        RelayAnswer(
            status: status,
            retryAfter: headers.first { "\($0.name)" == "retry-after" }?.value,
            // Our own answers are JSON; anything else shows as null and fails whatever is asked of it.
            json: (try? JSONValue.parse(body, limitBytes: 8 << 20)) ?? .null)
    }
}

/// What calls have cost so far, counted.
struct RelayWork: Sendable, Hashable {
    var lookups = 0
    /// Names of all look-ups that stood for something, and that did not.
    var found = 0
    var notFound = 0
    var verifications = 0
    var keysRead = 0
}

extension KeyWork {
    /// The real work, counted.
    static func counted(_ work: Noted<RelayWork>) -> KeyWork {
        KeyWork(
            read: { der in
                work.change { $0.keysRead += 1 }
                return KeyWork.real.read(der)
            },
            verifies: { key, signature, message in
                work.change { $0.verifications += 1 }
                return KeyWork.real.verifies(key, signature, message)
            },
            isSigned: { form in
                work.change { $0.verifications += 1 }
                return KeyWork.real.isSigned(form)
            })
    }
}

/// Answers its first look-ups when so many have come, each with what stood there before any of their calls
/// wrote.
private final class MeetingRegistry: ForwardingRegistry {
    let registry: any Registry
    private let met = Noted(0)
    private let count: Int
    private let work: Noted<RelayWork>

    init(_ registry: any Registry, _ count: Int, _ work: Noted<RelayWork>) {
        self.registry = registry
        self.count = count
        self.work = work
    }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        let found = try await registry.find(keys)
        work.change {
            $0.lookups += 1
            $0.found += found.count { $0 != nil }
            $0.notFound += found.count { $0 == nil }
        }
        met.change { $0 += 1 }
        await met.until(for: "look-ups that meet") { $0 >= self.count }
        return found
    }
}
