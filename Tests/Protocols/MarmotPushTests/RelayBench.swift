import AtRest
import Delivery
import MarmotPush
import MemoryStore
import Primitives
import PushModel
import PushTesting
import Synchronization
import WireFormats

/// What a push service was sent, in the words of the vectors.
struct Wake: Hashable, CustomStringConvertible {
    let platform: DeviceTarget.Platform
    /// The token as its device has it, in hex.
    let tokenHex: String

    var description: String { "\(platform.name) \(tokenHex)" }
}

/// A notification server with delivery, and push services that accept everything.
struct MarmotBench: Sendable {
    static let instance = ConfiguredName("marmot-main")!
    static let app = ConfiguredName("acme")!
    static let topic = "org.acme.chat"

    let clock: ManualClock
    let world: World
    let relay: MarmotRelay
    let delivery: DeliveryService
    let services = WakeLog()

    init(
        _ serving: MarmotServing, now: UnixTime = UnixTime(seconds: 1_800_000_000),
        limits: DeliveryLimits = DeliveryLimits()
    ) async throws {
        clock = ManualClock(start: now)
        world = clock.world(seed: 11)
        relay = MarmotRelay(serving, world: world)
        let engine = MemoryStore(owner: OwnerID(Digest16(high: 1, low: 1)), clock: world.now)
        let store = try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world)
        let directory = AppDirectory([
            AppDirectory.Instance(
                name: Self.instance,
                apps: [
                    AppDirectory.App(
                        name: Self.app,
                        outlets: [APNsOutlet(bundles: .listed([Self.topic])), FCMOutlet(isDefault: true)])
                ])
        ])
        let services = services
        delivery = DeliveryService(
            outbox: store, registry: store,
            plan: DeliveryService.Plan(
                apps: directory,
                routes: PushServices.standard.services.map {
                    DeliveryService.Route(WakeProvider($0, services), credential: Credential())
                }, overrides: [:]),
            limits: limits, world: world, journal: .silent)
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: (MarmotBench) async throws -> Result) async throws -> Result {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await delivery.run() }
            let result = try await body(self)
            group.cancelAll()
            // Being cancelled is how a delivery under test ends.
            do { try await group.waitForAll() } catch is CancellationError { return result }
            return result
        }
    }

    /// What one wrap came to.
    struct Result: Equatable {
        /// Devices woken by it, in no order.
        var wakes: Set<Wake> = []
        var count = 0
        var refusal: MarmotError.Code?
        var notes: [String: Int] = [:]

        var ignored: Int { notes["marmot.decoy", default: 0] + notes["marmot.token-unserved", default: 0] }
    }

    /// The whole way of one wrap; returns when the push services have been asked.
    func receive(
        _ wrap: NostrEvent, relay number: Int = 0, arrival: MarmotInbound.Arrival = .live
    ) async -> Result {
        let before = services.sent.count
        let notes = Mutex<[String: Int]>([:])
        let reception = VolatileReception(relay, of: Self.instance, intake: delivery.volatileIntake) { seen in
            notes.withLock { $0[seen.code.text, default: 0] += seen.count }
        }
        switch await reception.receive(MarmotInbound(wrap, relay: number, arrival: arrival)) {
        case .taken(let admission):
            await services.wait(for: before + admission.owed)
            let new = services.sent[before...]
            return Result(
                wakes: Set(new.map(\.wake)), count: new.count, notes: notes.withLock { $0 })
        case .withoutRoom: return Result(notes: notes.withLock { $0 })
        case .refused(let error): return Result(refusal: error.code)
        }
    }
}

/// Remembers what was sent and lets a test wait for it.
final class WakeLog: Sendable {
    struct Sent: Sendable {
        let push: OwedPush
        let wake: Wake
    }

    private let state = Noted<[Sent]>([])

    var sent: [Sent] { state.value }

    func wait(for count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "push \(count)", file: file, line: line) { $0.count >= count }
    }

    func note(_ push: OwedPush) {
        let address = push.message.address.reveal { Array($0) }
        // An APNs token travels as hex, an FCM token as it is.
        let wake =
            push.message.service == .apns
            ? Wake(platform: .apns, tokenHex: String(decoding: address, as: UTF8.self))
            : Wake(platform: .fcm, tokenHex: Hex.encode(address))
        state.change { $0.append(Sent(push: push, wake: wake)) }
    }
}

struct WakeProvider: DirectProvider {
    struct Slot: SendSlot {
        func release() {}
    }

    let lane: LaneName
    private let log: WakeLog

    init(_ kind: PushService, _ log: WakeLog) {
        lane = LaneName(app: MarmotBench.app, service: kind, environment: .production)
        self.log = log
    }

    func run() async throws {}
    func reserve() async throws(CancellationError) -> Slot {
        if Task.isCancelled { throw CancellationError() }
        return Slot()
    }
    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
        log.note(leased.push)
        return Answer(.accepted, .ok, sentAt: UnixTime(seconds: 1_800_000_000))
    }
}

/// Keys, tokens and wraps for tests, all drawn from one seed.
struct Sender {
    let world: World
    let server: Secp256k1KeyPair
    let author: Secp256k1KeyPair

    init(_ world: World, to server: Secp256k1KeyPair) {
        self.world = world
        self.server = server
        author = .generate(world)
    }

    func device(_ platform: DeviceTarget.Platform, _ number: Int) throws -> DeviceTarget {
        let text = platform == .apns ? String(repeating: "\(number % 10)", count: 32) : "fcm:token-\(number)"
        return try DeviceTarget(platform, token: Secret(text.utf8))
    }

    func chunk(
        _ target: DeviceTarget, _ format: TokenFormat, to key: XOnlyKey? = nil
    ) throws -> Secret {
        try TokenBox.encrypt(target, to: key ?? server.publicKey, format, world: world)
    }

    func decoy(_ format: TokenFormat) -> Secret {
        Secret(world.randomBytes(format.tokenBytes ?? 97))
    }

    func trigger(
        _ format: TokenFormat, _ chunks: [Secret], by author: Secp256k1KeyPair? = nil, createdAt: Int64? = nil
    ) throws -> NostrEvent {
        .rumor(
            kind: NostrKind.trigger, createdAt: createdAt ?? world.now().seconds, tags: format.triggerTags,
            content: try TriggerContent(format, chunks).serialized(),
            author: (author ?? self.author).publicKey)
    }

    /// Seals and wraps a trigger afresh.
    func wrap(
        _ rumor: NostrEvent, by author: Secp256k1KeyPair? = nil, to key: XOnlyKey? = nil
    ) throws -> NostrEvent {
        try GiftWrap.wrap(
            sealing: rumor, by: author ?? self.author, to: key ?? server.publicKey, world: world)
    }

    /// A trigger by an author of its own, in a wrap.
    func wrapped(_ format: TokenFormat, _ chunks: [Secret], createdAt: Int64? = nil) throws -> NostrEvent {
        let author = Secp256k1KeyPair.generate(world)
        return try wrap(trigger(format, chunks, by: author, createdAt: createdAt), by: author)
    }
}
