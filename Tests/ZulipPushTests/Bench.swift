import APNs
import Delivery
import FCM
import Primitives
import PushModel
import PushTesting
import Synchronization
import WireFormats
import ZulipPush

/// One answer as a peer would read it.
struct TestAnswer {
    let status: Int
    let json: JSONValue

    var code: String? { json["code"]?.string }
}

/// A relay with delivery and push services that answer as the test says. The wall clock stands still, and the
/// other goes at a twentieth of its pace: three seconds for a first attempt are a minute to a loaded machine.
final class TestRelay: Sendable {
    static let instance = ConfiguredName("zulip-main")!
    static let app = ConfiguredName("acme")!

    let store: TestStore
    let services: StubServices
    let relay: ZulipRelay
    let delivery: DeliveryService
    let keys = ZulipKeys(instance)

    init(
        now: UnixTime, pairs: [X25519KeyPair], admission: ZulipAdmission = .open, web: (any WebFetch)? = nil,
        mailDomains: (any MailDomains)? = nil, seed: UInt64 = 1
    ) {
        let random = Mutex(SeededRandom(seed: seed))
        let (live, start) = (World.live, World.live.instant())
        let instant = { @Sendable in start + (live.instant() - start) / 20 }
        let world = World(
            now: { now }, instant: instant, sleep: { try await live.sleep(live.instant() + ($0 - instant())) },
            random: { random.withLock { $0.next() } })
        store = TestStore(now: { now })
        services = StubServices(now: now)
        relay = ZulipRelay(
            instance: Self.instance, bouncerKeys: BouncerKeys(pairs), admission: admission, registry: store,
            web: web, mailDomains: mailDomains, world: world)
        let directory = AppDirectory([
            AppDirectory.Instance(
                name: Self.instance,
                apps: [
                    AppDirectory.App(name: Self.app, bundles: .any, environment: .fixed(.production), hasFCM: true)
                ],
                fcmApp: Self.app)
        ])
        let services = services
        let routes = [ProviderKind.apns, .fcm].map { kind in
            DeliveryService.Route(services.provider(kind), credential: Credential())
        }
        delivery = DeliveryService(
            outbox: store, registry: store,
            plan: DeliveryService.Plan(apps: directory, routes: routes, overrides: [Self.instance: ZulipRelay.override]),
            world: world, journal: .silent)
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: @Sendable (TestRelay) async throws -> Result) async throws -> Result {
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
    func post(_ path: ZulipPath, _ fields: [(String, String)], authorization: String? = nil) async -> TestAnswer {
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
    }

    private struct State {
        var upstream: [String: Upstream] = [:]
        var sends: [JSONValue] = []
    }

    private let state = Mutex(State())
    private let now: UnixTime

    init(now: UnixTime) { self.now = now }

    /// What was sent, as vectors write it.
    var sends: [JSONValue] { state.withLock(\.sends) }
    func answer(_ token: String, with upstream: Upstream) { state.withLock { $0.upstream[token] = upstream } }
    func provider(_ kind: ProviderKind) -> StubProvider { StubProvider(kind, self) }

    fileprivate func send(_ push: OwedPush) -> Answer {
        let token = push.message.address.reveal { String(decoding: $0, as: UTF8.self) }
        let seen = Self.describe(push.message, token)
        let upstream = state.withLock { state in
            state.sends.append(seen)
            return state.upstream[token]
        }
        guard let upstream else { return Answer(.accepted, .ok, sentAt: now) }
        switch push.message.kind {
        case .apns:
            let verdict = APNsOutcomeTable.judge(
                status: upstream.status, body: Array(#"{"reason":"\#(upstream.word)"}"#.utf8), retryAfter: [],
                now: now)
            return Answer(verdict.outcome, verdict.reason, sentAt: now)
        case .fcm:
            let detail = #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(upstream.word)"}"#
            let verdict = FCMOutcomeTable.judge(
                status: upstream.status,
                body: Array(#"{"error":{"code":\#(upstream.status),"details":[\#(detail)]}}"#.utf8), retryAfter: [],
                now: now)
            return Answer(verdict.outcome, verdict.reason, sentAt: now)
        }
    }

    private static func describe(_ message: ProviderMessage, _ token: String) -> JSONValue {
        switch message {
        case .apns(let message):
            return .object([
                "service": .string("apns"), "path": .string("/3/device/" + token),
                "headers": .object([
                    "apns-topic": .string(message.bundle + message.pushType.topicSuffix),
                    "apns-priority": .string(String(message.priority)),
                    "apns-push-type": .string(message.pushType.rawValue),
                ]),
                "body": json(message.payload),
            ])
        case .fcm(let message):
            let request = FCMRequest(authority: "fcm", project: "p", addressKind: .token)
            // A body that cannot be made shows as null and differs from every vector.
            let body = (try? request.body(for: message)).map { json($0) } ?? .null
            return .object(["service": .string("fcm"), "body": body])
        }
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

    init(_ kind: ProviderKind, _ services: StubServices) {
        lane = LaneName(app: TestRelay.app, service: kind, environment: .production)
        self.services = services
    }

    func run() async throws {}
    func reserve() async throws(CancellationError) -> Slot {
        if Task.isCancelled { throw CancellationError() }
        return Slot()
    }
    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer { services.send(leased.push) }
}
