import APNs
import AtRest
import Delivery
import FCM
import MemoryStore
import Primitives
import PushModel
import PushTesting
import Synchronization
import Testing
import WireFormats
import ZulipPush

/// One answer as a peer would read it.
struct TestAnswer {
    let status: Int
    let json: JSONValue

    var code: String? { json["code"]?.string }
}

/// A relay over a real store, with delivery and push services that answer as the test says.
///
/// The wall clock moves when a test moves it. The monotonic clock stands still, so that no deadline can come
/// and every reply waits for real first outcomes, however busy the machine is; only sleeps take their time.
final class TestRelay: Sendable {
    static let instance = ConfiguredName("zulip-main")!
    static let app = ConfiguredName("acme")!

    let store: StoreSpy
    let services: StubServices
    let relay: ZulipRelay
    let delivery: DeliveryService
    let world: World
    let keys = ZulipKeys(instance)
    private let clock: WallClock

    private final class WallClock: Sendable {
        let now: Mutex<UnixTime>
        init(_ now: UnixTime) { self.now = Mutex(now) }
    }

    /// - Parameter rows: bound of the outbox.
    init(
        now: UnixTime, pairs: [X25519KeyPair], admission: ZulipAdmission = .open, web: (any WebFetch)? = nil,
        mailDomains: (any MailDomains)? = nil, fallbacks: FallbackAlerts = FallbackAlerts([:]),
        seed: UInt64 = 1, rows: Int = 10_000, bounds: ZulipBounds = ZulipBounds(),
        mayFetch: @escaping @Sendable () -> Duration? = { nil }
    ) async throws {
        let clock = WallClock(now)
        self.clock = clock
        let random = Mutex(SeededRandom(seed: seed))
        let instant = ContinuousClock.now
        let world = World(
            now: { clock.now.withLock { $0 } }, instant: { instant },
            // Bound: the span that the code under test asks for.
            sleep: { try await Task.sleep(for: instant.duration(to: $0), clock: .continuous) },
            random: { random.withLock { $0.next() } })
        self.world = world
        let owner = OwnerID(Digest16(high: 1, low: seed))
        let engine = MemoryStore(owner: owner, sharing: MemoryStore.Shared(rows: rows), clock: world.now)
        store = StoreSpy(
            try await SealedStore(engine: engine, keys: AtRestKeys.generate(world), world: world))
        services = StubServices(now: world.now)
        relay = ZulipRelay(
            instance: Self.instance, bouncerKeys: BouncerKeys(pairs), admission: admission, registry: store,
            web: web, mailDomains: mailDomains, fallbacks: fallbacks, bounds: bounds,
            charge: { $0.allowance.name == "fetches" ? mayFetch() : nil },
            world: world)
        let directory = AppDirectory([
            AppDirectory.Instance(
                name: Self.instance,
                apps: [
                    AppDirectory.App(
                        name: Self.app, outlets: [APNsOutlet(bundles: .any), FCMOutlet(isDefault: true)])
                ])
        ])
        let services = services
        let routes = [PushService.apns, .fcm].map { kind in
            DeliveryService.Route(services.provider(kind), credential: Credential())
        }
        delivery = DeliveryService(
            outbox: store, registry: store,
            plan: DeliveryService.Plan(
                apps: directory, routes: routes, overrides: [Self.instance: ZulipRelay.override]),
            world: world, journal: .silent)
    }

    func advance(by span: Duration) { clock.now.withLock { $0 = $0 + span } }

    /// What stands under a name now.
    func record(_ key: RecordKey) async throws -> Record? { try await store.find([key])[0] }

    /// Under what a device of a realm stands, by whoever has the realm now.
    func deviceKey(_ realm: UUIDText, _ token: TokenID) async throws -> RecordKey {
        let known = try #require(try await record(keys.realm(realm)).flatMap { ZulipRealm(body: $0.body) })
        return keys.device(known.tenancy, token)
    }

    /// Revisions of all devices' records: unchanged when nothing was written.
    func deviceRevisions() async throws -> [UInt64] {
        try await store.page(.space(Space(Self.instance, "device")), after: 0, limit: 1_000).map(\.revision)
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: @Sendable (TestRelay) async throws -> Result) async throws
        -> Result
    {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.delivery.run() }
            let result = try await body(self)
            group.cancelAll()
            // Being cancelled is how a delivery under test ends.
            do { try await group.waitForAll() } catch is CancellationError { return result }
            return result
        }
    }

    /// One HTTP request from bytes to answer.
    func ask(
        _ method: String, _ path: String, authorization: String? = nil, body: [UInt8] = []
    ) async -> TestAnswer {
        do throws(ZulipError) {
            let inbound = try withBytes(body) { (bytes) throws(ZulipError) in
                try ZulipInbound.parse(
                    method: method, path: path, authorization: authorization, contentType: nil, body: bytes)
            }
            let verdict = try await relay.receive(inbound)
            do throws(IntakeRefusal<ZulipError>) {
                let reply = try await delivery.intake.admit(verdict, instance: Self.instance)
                return answer(200, reply.body())
            } catch {
                if case .refused(let refusal) = error { return refused(refusal) }
                return refused(ZulipError(.overloaded))
            }
        } catch {
            return refused(error)
        }
    }

    /// Sends what an origin asks.
    func ask(_ call: ZulipCall) async -> TestAnswer {
        let authorization = call.headers.first { $0.name == "Authorization" }?.value
        return await ask(
            call.method, call.path,
            authorization: authorization?.reveal { String(decoding: $0, as: UTF8.self) },
            body: call.body.reveal { Array($0) })
    }

    /// A form by path.
    func post(_ path: ZulipPath, _ fields: [(String, String)], authorization: String? = nil) async
        -> TestAnswer
    {
        let form = Form(fields.map { ($0.0, Array($0.1.utf8)) })
        return await ask("POST", path.rawValue, authorization: authorization, body: form.encoded())
    }

    private func refused(_ error: ZulipError) -> TestAnswer {
        let wire = ZulipErrorAnswer(error)
        return answer(wire.status, wire.body)
    }

    private func answer(_ status: Int, _ body: [UInt8]) -> TestAnswer {
        // Our own answers are JSON; anything else shows as null and fails whatever is asked of it.
        TestAnswer(status: status, json: (try? JSONValue.parse(body)) ?? .null)
    }
}

/// Apple and Google in one value: answers by token, judged by the senders' own tables.
final class StubServices: Sendable {
    struct Upstream: Sendable {
        let status: Int
        let word: String
        /// Since when, with 410; Unix milliseconds.
        var timestamp: Int64?
    }

    private struct State {
        var upstream: [String: Upstream] = [:]
        var sends: [JSONValue] = []
        var isHeld = false
    }

    private let state = Noted(State())
    private let now: @Sendable () -> UnixTime

    init(now: @escaping @Sendable () -> UnixTime) { self.now = now }

    /// What was sent, as vectors write it.
    var sends: [JSONValue] { state.value.sends }
    /// `nil`: accepted, as at first.
    func answer(_ token: String, with upstream: Upstream?) {
        state.change { $0.upstream[token] = upstream }
    }
    func provider(_ kind: PushService) -> StubProvider { StubProvider(kind, self) }

    /// From now on requests arrive and are not answered before ``release()``.
    func hold() { state.change { $0.isHeld = true } }
    func release() { state.change { $0.isHeld = false } }

    /// Returns once so many requests have arrived.
    func sends(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "request \(count)", file: file, line: line) { $0.sends.count >= count }
    }

    private func arrive(_ seen: JSONValue) async {
        state.change { $0.sends.append(seen) }
        await state.until(for: "a release of what is held") { !$0.isHeld }
    }

    fileprivate func send(_ push: OwedPush) async -> Answer {
        let token = push.message.address.reveal { String(decoding: $0, as: UTF8.self) }
        await arrive(Self.describe(push.message, token))
        let upstream = state.value.upstream[token]
        let now = now()
        guard let upstream else { return Answer(.accepted, .ok, sentAt: now) }
        if push.message.service == .apns {
            let time = upstream.timestamp.map { #","timestamp":\#($0)"# } ?? ""
            let verdict = APNsOutcomeTable.judge(
                status: upstream.status, body: Array(#"{"reason":"\#(upstream.word)"\#(time)}"#.utf8),
                retryAfter: [], now: now)
            return Answer(verdict.outcome, verdict.reason, sentAt: now)
        }
        let type = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
        let detail = upstream.word.isEmpty ? "" : #"{"@type":"\#(type)","errorCode":"\#(upstream.word)"}"#
        let verdict = FCMOutcomeTable.judge(
            status: upstream.status,
            body: Array(#"{"error":{"code":\#(upstream.status),"details":[\#(detail)]}}"#.utf8),
            retryAfter: [], now: now)
        return Answer(verdict.outcome, verdict.reason, sentAt: now)
    }

    private static func describe(_ message: ProviderMessage, _ token: String) -> JSONValue {
        if let message = message.apns {
            return .object([
                "service": .string("apns"), "path": .string("/3/device/" + token),
                "headers": .object([
                    "apns-topic": .string(message.topic),
                    "apns-priority": .string(String(message.priority)),
                    "apns-push-type": .string(message.pushType.rawValue)
                ]),
                "body": json(message.payload)
            ])
        }
        let request = FCMRequest(authority: "fcm", project: "p", addressKind: .token)
        // A body that cannot be made shows as null and differs from every vector.
        let body = message.fcm.flatMap { try? request.body(for: $0) }.map { json($0) } ?? .null
        return .object(["service": .string("fcm"), "body": body])
    }

    private static func json(_ secret: Secret) -> JSONValue {
        secret.reveal { (try? JSONValue.parse($0)) ?? .null }  // As above.
    }
}

struct StubProvider: Provider {
    struct Slot: SendSlot {
        func release() {}
    }

    let lane: LaneName
    private let services: StubServices

    init(_ kind: PushService, _ services: StubServices) {
        lane = LaneName(app: TestRelay.app, service: kind, environment: .production)
        self.services = services
    }

    func run() async throws {}
    func reserve() async throws(CancellationError) -> Slot {
        if Task.isCancelled { throw CancellationError() }
        return Slot()
    }
    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer { await services.send(leased.push) }
}
