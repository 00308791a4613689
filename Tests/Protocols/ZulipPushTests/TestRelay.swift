import APNs
import Delivery
import DeliveryTesting
import FCM
import HTTP2Client
import Primitives
import PushModel
import PushTesting
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
/// Where a test has it follow the sleeps (``followSleeps()``), they move it.
final class TestRelay: Sendable {
    static let instance = configured("zulip-main")

    let relay: ZulipRelay
    let world: World
    let keys = ZulipRecordNames(instance)
    private let clock: ManualClock
    private let follows = Noted(false)
    private let rig: DeliveryRig

    var store: StoreSpy { rig.store }
    var services: StubServices { rig.services }
    var delivery: DeliveryService { rig.delivery }

    /// - Parameter rows: bound of the outbox.
    init(
        now: UnixTime, pairs: [X25519KeyPair], admission: ZulipAdmission = .open, web: (any WebFetch)? = nil,
        mailDomains: (any MailDomains)? = nil, fallbacks: FallbackAlerts = FallbackAlerts([:]),
        defaultAppID: String? = nil,
        seed: UInt64 = 1, rows: Int = 10_000, bounds: ZulipBounds = ZulipBounds(),
        mayFetch: @escaping @Sendable () -> Duration? = { nil }
    ) async throws {
        clock = ManualClock(start: now)
        var world = clock.world(seed: seed)
        let instant = clock.instant
        world.sleep = { [clock, follows] in
            let span = instant.duration(to: $0)
            // Bound: the span that the code under test asks for.
            try await Task.sleep(for: span, clock: .continuous)
            if follows.value { clock.advance(by: min(span, .milliseconds(100))) }
        }
        self.world = world
        rig = try await DeliveryRig(
            Self.instance, outlets: [APNsOutlet(bundles: .any), FCMOutlet(isDefault: true)],
            override: ZulipRelay.override, rows: rows, world: world)
        relay = ZulipRelay(
            instance: Self.instance, bouncerKeys: BouncerKeys(pairs), admission: admission,
            registry: rig.store, web: web, mailDomains: mailDomains, fallbacks: fallbacks,
            defaultAppID: defaultAppID, bounds: bounds,
            charge: { $0.allowance.name == "fetches" ? mayFetch() : nil },
            world: world)
    }

    /// From now on both clocks move by a tick with each sleep: of many pushes to one phone a few are sent at
    /// once, and more at each tick.
    func followSleeps() { follows.change { $0 = true } }

    /// Moves the wall clock alone.
    func advance(by span: Duration) { clock.skewWall(by: span) }

    /// What stands under a name now.
    func record(_ key: RecordKey) async throws -> Record? { try await store.find([key])[0] }

    /// Under what a device of a realm stands, by the one that has the realm now.
    func deviceKey(_ realm: UUIDText, _ token: TokenID) async throws -> RecordKey {
        let known = try #require(try await record(keys.realm(realm)).flatMap { ZulipRealm(body: $0.body) })
        return keys.device(known.tenancy, token)
    }

    /// The same of one that registered with an account id.
    func accountKey(_ realm: UUIDText, _ number: Int64) async throws -> RecordKey {
        let known = try #require(try await record(keys.realm(realm)).flatMap { ZulipRealm(body: $0.body) })
        return keys.account(known.tenancy, number)
    }

    /// Revisions of all devices' records: unchanged when nothing was written.
    func deviceRevisions() async throws -> [UInt64] {
        var revisions: [UInt64] = []
        for room in ["device", "account"] as [StaticString] {
            let page = try await store.page(.space(Space(Self.instance, room)), after: 0, limit: 1_000)
            revisions += page.map(\.revision)
        }
        return revisions
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(_ body: @Sendable (TestRelay) async throws -> Result) async throws
        -> Result
    {
        try await rig.running { try await body(self) }
    }

    /// One HTTP request from bytes to answer.
    func ask(
        _ method: String, _ path: String, query: String? = nil, authorization: String? = nil,
        body: [UInt8] = []
    ) async -> TestAnswer {
        do throws(ZulipError) {
            let inbound = try withBytes(body) { (bytes) throws(ZulipError) in
                try ZulipInbound.parse(
                    method: method, path: path, query: query, authorization: authorization,
                    body: bytes, credentials: relay.credentials(shownBy:))
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
    func ask(_ call: HTTPCall) async -> TestAnswer {
        let authorization = call.headers.first { $0.name == "Authorization" }?.value
        return await ask(
            call.method, call.url,
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

/// Apple and Google, whose answers the senders' own tables judge.
extension StubServices {
    struct Upstream: Sendable {
        let status: Int
        let word: String
        /// Since when, with 410; Unix milliseconds.
        var timestamp: Int64?
    }

    /// What was sent, as vectors write it.
    var sends: [JSONValue] { sent.map { Self.describe($0.message) } }
    /// Returns once so many requests have arrived.
    func sends(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await sent(atLeast: count, file: file, line: line)
    }

    /// `nil`: accepted, as at first.
    func answer(_ token: String, with upstream: Upstream?) {
        let now = now
        guard let upstream else { return answer(token, by: nil) }
        answer(token) { push in upstream.answer(to: push.message.service, at: now()) }
    }

    private static func describe(_ message: ProviderMessage) -> JSONValue {
        if let message = message.apns {
            let token = message.token.reveal { String(decoding: $0, as: UTF8.self) }
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

extension StubServices.Upstream {
    fileprivate func answer(to service: PushService, at now: UnixTime) -> Answer {
        if service == .apns {
            let time = timestamp.map { #","timestamp":\#($0)"# } ?? ""
            let verdict = APNsOutcomeTable.judge(
                status: status, body: Array(#"{"reason":"\#(word)"\#(time)}"#.utf8), retryAfter: [],
                now: now)
            return Answer(verdict.outcome, verdict.reason, sentAt: now)
        }
        let type = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
        let detail = word.isEmpty ? "" : #"{"@type":"\#(type)","errorCode":"\#(word)"}"#
        let verdict = FCMOutcomeTable.judge(
            status: status, body: Array(#"{"error":{"code":\#(status),"details":[\#(detail)]}}"#.utf8),
            retryAfter: [], now: now)
        return Answer(verdict.outcome, verdict.reason, sentAt: now)
    }
}
