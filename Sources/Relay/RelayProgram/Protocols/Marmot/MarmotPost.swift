import CoreMetrics
import Delivery
import MarmotPush
import NostrIngress
import PushModel
import Secp256k1Keys

/// One Marmot instance between its relays and the lanes. Nobody hears back, so what is wrong is counted and
/// no more.
final class MarmotPost: Sendable {
    private let relay: MarmotRelay
    private let reception: VolatileReception<MarmotRelay>
    private let outcomes: WordMeter
    private let remembered: Meter
    private let members: @Sendable () -> Int

    /// - Throws: `CommandFailure` that names the instance.
    init(
        _ name: ConfiguredName, _ marmot: MarmotSettings, keys: [Secp256k1KeyPair], servesFCM: Bool,
        replacing old: MarmotPost?, on context: HostingContext
    ) throws(CommandFailure) {
        let (membership, world) = (context.delivery.membership, context.world)
        let group = GroupName(listeningFor: name)
        members = { membership.roster(of: group)?.count(at: world.instant()) ?? 1 }
        outcomes = WordMeter("sealbell_marmot_wraps_total", by: "outcome", of: name, context.metrics)
        let notes = WordMeter.notes(of: name, context.metrics)
        remembered = context.metrics.meter("sealbell_marmot_remembered", of: name)
        do throws(MarmotError) {
            var serving = try MarmotServing(
                keys: keys, wake: try Self.wake(marmot.mode), topic: marmot.bundle, servesFCM: servesFCM)
            serving.formats = marmot.formats
            serving.relays = max(1, marmot.relays.count)
            serving.backlog = marmot.backlog == .live ? .liveOnly : .grace(MarmotLimits.backlogGrace)
            serving.pause = .seconds(marmot.wakePause)
            serving.contentSpan = .seconds(marmot.contentMemory)
            serving.budgets.everything = MarmotBudgets.everything(
                cpuPercent: marmot.cpuPercent, of: Self.attempt)
            serving.budgets.sender = MarmotBudgets.sender(perMinute: marmot.authorPerMinute)
            // What was seen before a reload is not new after it.
            relay = MarmotRelay(serving, replacing: old?.relay, world: world)
            reception = VolatileReception(relay, of: name, intake: context.delivery.volatileIntake) {
                notes.count($0.code, $0.count)
            }
        } catch {
            throw CommandFailure(.configuration, "instances.\(name.text): \(error.coded)")
        }
    }

    /// What an attempt at a token costs here, measured once.
    private static let attempt = AttemptCost.measure(.live)

    /// Forgets what is over.
    func forget() {
        relay.forget()
        remembered.set(relay.remembered)
    }

    private static func wake(_ mode: MarmotSettings.Mode) throws(MarmotError) -> MarmotWake {
        switch mode {
        case .silent: .silent
        case .genericAlert, .mutableAlert:
            try .alert(
                title: MarmotWake.defaultTitle, body: MarmotWake.defaultBody,
                isMutable: mode == .mutableAlert)
        }
    }

    /// Takes one event in.
    var take: NostrIngress.Take {
        { event, standing, relay in await self.receive(event, standing, relay) }
    }

    private func receive(_ event: NostrEvent, _ standing: EventSource, _ index: Int) async {
        let inbound = MarmotInbound(event, relay: index, arrival: standing.arrival, members: members())
        switch await reception.receive(inbound) {
        case .taken: outcomes.count("taken")
        case .withoutRoom: outcomes.count("no-room")
        case .refused(let error): outcomes.count(error.codeText)
        }
        remembered.set(relay.remembered)
    }
}

extension EventSource {
    fileprivate var arrival: MarmotInbound.Arrival {
        switch self {
        case .live: .live
        case .stored: .stored
        case .missed(let away): .missed(away)
        }
    }
}
