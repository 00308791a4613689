import Delivery
import DeliveryTesting
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush

/// A relay over a real store, with delivery and push services that answer as the test says.
final class StatusRig: Sendable {
    static let instance = configured("acme-status")
    static let now = UnixTime(seconds: 1_700_000_000)

    let relay: StatusRelay
    let world: World
    let notes = Noted<[NoteCode]>([])
    private let clock: ManualClock
    private let rig: DeliveryRig
    private let reception: Reception<StatusRelay>

    var store: StoreSpy { rig.store }
    var services: StubServices { rig.services }

    init(
        identity: Secp256k1KeyPair, policy: StatusPolicy = StatusPolicy(), seed: UInt64 = 1,
        newcomers: Int = StatusAllowances.registrationsPerMinute
    ) async throws {
        clock = ManualClock(start: Self.now)
        var world = clock.world(seed: seed)
        let instant = clock.instant
        // Bound: the span that the code under test asks for.
        world.sleep = { try await Task.sleep(for: instant.duration(to: $0), clock: .continuous) }
        self.world = world
        rig = try await DeliveryRig(
            Self.instance, outlets: [APNsOutlet(bundles: .any), FCMOutlet(isDefault: true)],
            override: StatusRelay.override, world: world)
        let tolls = Tolls(world: world)
        relay = StatusRelay(
            instance: Self.instance, identity: identity, policy: policy, registry: rig.store,
            allowances: StatusAllowances(registrations: newcomers), charge: { tolls.take($0) }, world: world)
        let notes = notes
        reception = Reception(
            relay, of: Self.instance, intake: rig.delivery.intake, pushesPerMinute: 0,
            tolls: tolls,
            note: { note in notes.change { $0.append(note) } })
    }

    /// Moves both clocks.
    func pass(_ span: Duration) { clock.advance(by: span) }

    /// Runs the delivery while `body` runs.
    func running<Result: Sendable>(
        _ body: @Sendable (StatusRig) async throws -> Result
    ) async throws -> Result {
        try await rig.running { try await body(self) }
    }

    /// One message as hosting passes it on, and the answer.
    ///
    /// - Parameter isStored: it comes from a node's store.
    func receive(
        _ wrapped: Secret, transportSigner: PublicPoint? = nil, isStored: Bool = false
    ) async -> StatusReply? {
        let inbound: StatusInbound
        do throws(StatusError) {
            let fallback = relay.policy.compatibility == .statusGo ? transportSigner : nil
            let message = try MetadataMessage(reading: wrapped, fallback: fallback)
            guard let found = try StatusInbound(message, isStored: isStored) else { return nil }
            inbound = found
        } catch {
            return nil
        }
        do throws(StatusError) {
            return try await reception.receive(inbound, from: ClientKey(0), bytes: wrapped.count)
        } catch {
            return relay.reply(to: inbound, refusing: error)
        }
    }

    /// One message of the network as hosting takes it.
    ///
    /// - Parameter keys: of its topic.
    /// - Returns: what is published. A gateway takes nothing.
    func take(_ message: WakuMessage, keys: [Secret]) async -> [WakuMessage] {
        guard let topic = WakuTopic.id(ofContentTopic: message.contentTopic) else { return [] }
        let conversation = StatusConversation(with: relay, heardSince: .distantPast, clockSlack: .zero)
        var answers: [WakuMessage] = []
        var step = conversation.begin(message, on: topic, isFromStore: false, isOurs: true)
        // Ends: each step is nearer to the end.
        while true {
            switch step.next {
            case .findKeys(let unopened): step = unopened.open(with: keys)
            case .judge(let question):
                do throws(StatusError) {
                    step = question.taken(
                        try await reception.receive(
                            question.inbound, from: ClientKey(0), bytes: question.bytes))
                } catch {
                    step = question.refused(error)
                }
            case .handOver(let handover):
                step = handover.settled(failed: Set(handover.pushes.indices), dead: [])
            case .publish(let publication):
                if let message = publication.sealed() { answers.append(message) }
                step = publication.published()
            case .end: return answers
            }
        }
    }

    /// Puts a registration as if it had been accepted.
    func keep(_ registration: PushNotificationRegistration, of person: Secret) async throws {
        let bundle = registration.tokenType == .apn ? "org.acme" : nil
        let record = Record(
            key: relay.keys.registration(of: person, installation: registration.installationID),
            owner: relay.keys.owner(person),
            address: relay.keys.address(of: registration.deviceToken, bundle: bundle),
            version: registration.version, touchedAt: world.now(),
            body: StatusRow(person: person, registration).body)
        _ = try await store.apply([.put(record, if: .any)])
    }

    func version(of person: Secret, installation: Secret) async throws -> UInt64? {
        try await store.find([relay.keys.registration(of: person, installation: installation)])[0]?.version
    }

    /// All that is kept of registrations, tombstones too.
    func records() async throws -> [Record] {
        try await store.page(.space(relay.keys.registrations), after: 0, limit: 1_000)
    }
}
