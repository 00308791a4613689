import Delivery
import DeliveryTesting
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
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
struct MarmotRig: Sendable {
    static let instance = configured("marmot-main")
    static let topic = "org.acme.chat"

    let clock: ManualClock
    let world: World
    let relay: MarmotRelay
    private let rig: DeliveryRig

    var store: StoreSpy { rig.store }
    var services: StubServices { rig.services }
    var delivery: DeliveryService { rig.delivery }

    init(
        _ serving: MarmotServing, now: UnixTime = UnixTime(seconds: 1_800_000_000),
        limits: DeliveryLimits = DeliveryLimits()
    ) async throws {
        clock = ManualClock(start: now)
        world = clock.world(seed: 11)
        relay = MarmotRelay(serving, world: world)
        rig = try await DeliveryRig(
            Self.instance,
            outlets: [APNsOutlet(bundles: .listed([Self.topic])), FCMOutlet(isDefault: true)],
            limits: limits, world: world)
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: (MarmotRig) async throws -> Result) async throws -> Result {
        try await rig.running { try await body(self) }
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
            await services.sent(atLeast: before + admission.owed)
            let new = services.sent[before...]
            return Result(
                wakes: Set(new.map(\.wake)), count: new.count, notes: notes.withLock { $0 })
        case .withoutRoom: return Result(notes: notes.withLock { $0 })
        case .refused(let error): return Result(refusal: error.code)
        }
    }
}

extension OwedPush {
    /// The device that it wakes.
    var wake: Wake {
        let address = message.address.reveal { Array($0) }
        // An APNs token travels as hex, an FCM token as it is.
        return message.service == .apns
            ? Wake(platform: .apns, tokenHex: String(decoding: address, as: UTF8.self))
            : Wake(platform: .fcm, tokenHex: Hex.encode(address))
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
