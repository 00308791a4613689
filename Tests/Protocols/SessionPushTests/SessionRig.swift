import Delivery
import DeliveryTesting
import PushModel
import PushTesting
import SessionPush
import WireFormats

/// A relay over a real store, with delivery and push services that answer as the test says.
///
/// The wall clock moves when a test moves it; the monotonic one stands still.
final class SessionRig: Sendable {
    static let instance = configured("acme-session")
    static let now = UnixTime(seconds: 1_700_000_000)
    static let bundle = "com.loki-project.loki-messenger"

    let relay: SessionRelay
    let world: World
    /// Tolls that were asked for.
    let tolls = Noted<[Toll]>([])
    let notes = Noted<[NoteCode]>([])
    private let clock: ManualClock
    private let rig: DeliveryRig
    private let reception: Reception<SessionRelay>
    private let shelf: Tolls

    var store: StoreSpy { rig.store }
    var services: StubServices { rig.services }
    var keys: SessionRecordNames { relay.keys }

    /// - Parameter tolled: how long a toll must wait; `nil`: it is taken.
    init(
        services: [SessionService] = [.apns, .apnsSandbox, .firebase],
        policy: SessionPolicy = SessionPolicy(),
        aps: [UInt8]? = nil, rows: Int = 10_000, seed: UInt64 = 1, now: UnixTime = SessionRig.now,
        tolled: @escaping @Sendable (Toll) -> Duration? = { _ in nil }
    ) async throws {
        clock = ManualClock(start: now)
        var world = clock.world(seed: seed)
        let instant = clock.instant
        // Bound: the span that the code under test asks for.
        world.sleep = { try await Task.sleep(for: instant.duration(to: $0), clock: .continuous) }
        self.world = world
        rig = try await DeliveryRig(
            Self.instance,
            outlets: [
                APNsOutlet(bundles: .listed([Self.bundle])), FCMOutlet(isDefault: false)
            ], override: SessionRelay.override, rows: rows, world: world)
        let app = SessionApp(name: DeliveryRig.app, bundle: Self.bundle, aps: aps)
        let apps = SessionApps(Dictionary(uniqueKeysWithValues: services.map { ($0, app) }))
        let tolls = tolls
        let known = Tolls(world: world)
        shelf = known
        relay = SessionRelay(
            instance: Self.instance, apps: apps, policy: policy, registry: rig.store,
            charge: { toll in
                tolls.change { $0.append(toll) }
                return tolled(toll) ?? known.take(toll)
            }, world: world)
        let notes = notes
        reception = Reception(
            relay, of: Self.instance, intake: rig.delivery.intake, pushesPerMinute: 0, tolls: known,
            note: { note in notes.change { $0.append(note) } })
    }

    /// Moves the wall clock alone.
    func advance(by span: Duration) { clock.skewWall(by: span) }
    /// Moves both clocks.
    func pass(_ span: Duration) { clock.advance(by: span) }

    /// Uses up a payer's part of an allowance for this minute.
    func useUp(_ allowance: Allowance, of payer: Payer) {
        // Ends: the clock stands still.
        for units in [allowance.perMinute / 100, 1] {
            while shelf.take(Toll(allowance, of: payer, units: units)) == nil {}
        }
    }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(
        _ body: @Sendable (SessionRig) async throws -> Result
    ) async throws -> Result {
        try await rig.running { try await body(self) }
    }

    /// One call from bytes to the answer's JSON.
    func ask(
        _ path: String, _ body: [UInt8], by way: SessionInbound.Way = .plain, from client: UInt64 = 1
    ) async throws -> JSONValue {
        let answer: [UInt8]
        do throws(SessionError) {
            let endpoint = try SessionEndpoint.find(method: "POST", path: path)
            let call = try withBytes(body) { (body) throws(SessionError) in
                try SessionCallBody(endpoint, by: way, body)
            }
            var results: [Result<SessionReply, SessionError>] = []
            for element in call.elements {
                results.append(await judged(element, ClientKey(client), body.count))
            }
            answer = CallReply.body(results, isArray: call.isArray)
        } catch {
            answer = CallReply.body(error)
        }
        return try JSONValue.parse(answer)
    }

    private func judged(
        _ element: Result<SessionInbound, SessionError>, _ client: ClientKey, _ bytes: Int
    ) async -> Result<SessionReply, SessionError> {
        do throws(SessionError) {
            return .success(try await reception.receive(element.get(), from: client, bytes: bytes))
        } catch {
            return .failure(error)
        }
    }

    func ask(_ path: String, _ json: JSONValue) async throws -> JSONValue {
        try await ask(path, json.serialized())
    }

    /// One message of a storage server, as hosting passes it on.
    func notify(_ push: StorageNotice) async throws(SessionError) {
        do throws(SessionError) {
            var rest: UInt64? = 0
            while let after = rest {
                let reply = try await reception.receive(
                    .notified(push, after: after), from: ClientKey(0), bytes: 0)
                if case .taken(let restAfter) = reply { rest = restAfter } else { rest = nil }
            }
        } catch {
            relay.release(push)
            throw error
        }
    }

    /// Subscriptions as they are stored.
    func records() async throws -> [Record] {
        try await store.page(.space(keys.subscriptions), after: 0, limit: 10_000)
    }

    func ends() async throws -> [Record] {
        try await store.page(.space(keys.ends), after: 0, limit: 10_000)
    }

    func subscriptions() async throws -> [SessionSubscription] {
        try await records().compactMap { SessionSubscription($0) }
    }
}
