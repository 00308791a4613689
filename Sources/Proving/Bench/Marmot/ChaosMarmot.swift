import Foundation
import MarmotPush
import NIOCore
import PushModel
import Secp256k1Keys
import Simulators
import Synchronization
import WireFormats

/// Marmot's part of a chaos trial: a Nostr relay, and somebody who publishes triggers to it while the
/// notification server behind it is killed.
final class ChaosMarmot: ChaosCompanion {
    static let discussion = """
        Marmot triggers flow beside it, through a Nostr relay of this process: what a kill loses is counted, \
        nobody is woken twice, each relay that is waited for listens again, the last one delivers all, and \
        no file holds a trace.
        """

    private struct State {
        var ledger = ChaosMarmotLedger()
        /// Of the life under way: the subscription is in force, the list was published.
        var isListening = false
        var hasList = false
        /// What must be in no file: the first and the last of what was published.
        var first: [[UInt8]] = []
        var last: [[UInt8]] = []
    }

    /// Triggers of the last life: all of them must arrive.
    static let lastTriggers = 50
    /// How often the last life loses its connection, and what is published each time while it is away.
    static let absences = 3
    static let missedTriggers = 10
    /// Values looked for in files; each is looked for in several forms.
    private static let kept = 40
    /// How long a relay that was started may take to listen: a connection, its greeting, back-off.
    private static let listenSpan = Duration.seconds(30)

    let pair: Secp256k1KeyPair
    let url: String
    private let nostr: NostrRelaySimulator
    /// From the start on: the first relay may listen before anybody watches.
    private let notes: AsyncStream<NostrRelayNote>
    private let service: ChaosService
    private let bundle: String
    private let world: World
    private let state = Mutex(State())

    init(_ setting: ChaosSetting) async throws {
        service = setting.service
        bundle = setting.bundle
        world = setting.world
        pair = .generate(world)
        var configuration = NostrRelayConfiguration()
        // The wraps of a trial bear dates of two days: what was missed is not the newest among them.
        configuration.eventsOfRequest = configuration.storedEvents
        // What a relay says before it was asked must not end anybody.
        configuration.knobs.speaksFirst = true
        nostr = NostrRelaySimulator(
            configuration, authority: setting.authority, eventLoopGroup: setting.group)
        notes = nostr.notes()
        try await nostr.start()
        url = nostr.url ?? ""
    }

    func stop() async { await nostr.stop() }

    var ledger: ChaosMarmotLedger { state.withLock(\.ledger) }

    /// Listens at the one Nostr relay.
    var instance: StagedInstance {
        let url = url
        return StagedInstance(
            name: "marmot-load", publicKey: pair.publicKey.bytes,
            keyFile: ("nostr.key", pair.secret.reveal { Hex.encode(Array($0)) } + "\n"), isServed: false
        ) { plan in
            [
                "protocol: marmot", "apps: [load]", "key_file: \(plan.directory)/nostr.key",
                "relays: [\"\(url)\"]", "ca: \(plan.directory)/ca.pem"
            ]
        }
    }

    func report(to report: inout BenchReport, directory: String) -> Bool {
        search(directory)
        let ledger = ledger
        ledger.write(to: &report)
        return ledger.hasPassed
    }

    // MARK: What happens

    /// Follows what the relay under trial says to the Nostr relay, until cancelled.
    func watch() async {
        for await note in notes {
            state.withLock { state in
                switch note {
                case .requested: state.isListening = true
                case .published(let event, true) where event.kind == NostrKind.relayList:
                    state.hasList = true
                case .disconnected: (state.isListening, state.hasList) = (false, false)
                default: break
                }
            }
        }
    }

    /// The relay is gone: waits until its connection is, so that nothing is published to nobody.
    func killed(_ trial: ChaosTrial) async throws {
        let until = world.instant() + .seconds(5)
        while nostr.openConnections > 0, world.instant() < until { try await trial.pause(milliseconds: 1) }
        state.withLock { state in
            (state.isListening, state.hasList) = (false, false)
            state.ledger.killed()
        }
        if ledger.life.isMultiple(of: 7) { search(trial.plan.directory) }
    }

    /// False when the delivery belongs to no trigger.
    func delivered(_ delivery: Delivery) -> Bool {
        state.withLock { $0.ledger.delivered(delivery.token, at: delivery.receivedAt) }
    }

    /// Waits until the relay under trial listens and has published its list.
    func untilListening(_ trial: ChaosTrial) async throws {
        let until = world.instant() + Self.listenSpan
        while !state.withLock({ $0.isListening && $0.hasList }), world.instant() < until {
            try await trial.pause(milliseconds: 5)
        }
        state.withLock { $0.ledger.waited(isListening: $0.isListening, hasList: $0.hasList) }
    }

    /// Publishes trigger after trigger while somebody listens, until the trial is ending.
    func publish(_ trial: ChaosTrial) async throws {
        while !trial.shared.isEnding {
            // What is heard of a relay that was killed may be heard a moment late.
            let life = state.withLock { $0.isListening ? $0.ledger.life : nil }
            if let life, nostr.openConnections > 0 { try publishOne(in: life) }
            try await trial.pause(milliseconds: 10 + trial.random.below(20))
        }
    }

    /// Publishes what must arrive, and waits until it has.
    func finish(_ trial: ChaosTrial) async throws {
        try await untilListening(trial)
        let life = ledger.life
        for _ in 0..<Self.lastTriggers { try publishOne(in: life) }
        guard try await haveArrived(trial) else { return }
        // Of what it missed a relay takes nothing of the second in which it began (decision 0022).
        let second = world.now().seconds
        while world.now().seconds <= second { try await trial.pause(milliseconds: 20) }
        for _ in 0..<Self.absences {
            nostr.turn { $0.refusesRequests = .error }
            nostr.killConnections()
            // Nobody listens, connected again or not: it lies in the relay's store.
            for _ in 0..<Self.missedTriggers { try publishOne(in: life) }
            nostr.turn { $0.refusesRequests = nil }
            guard try await haveArrived(trial) else { return }
        }
    }

    /// Waits until nothing is missing of what this life was told; false when something is at the end of the
    /// span, and there is nothing more to wait for.
    private func haveArrived(_ trial: ChaosTrial) async throws -> Bool {
        let until = world.instant() + ChaosPlan.drainSpan
        while ledger.missing > 0, world.instant() < until { try await trial.pause(milliseconds: 20) }
        return ledger.missing == 0
    }

    /// One trigger for one device: said twice, and once more in a fresh wrap.
    ///
    /// - Parameter life: the relay that it is told to.
    private func publishOne(in life: Int) throws {
        let device = LoadDevice.make(trial(2) == 0 ? .apns : .fcm, world)
        service.register(device, bundle: bundle)
        let raw = device.kind == .apns ? try Hex.decode(Array(device.token.utf8)) : Array(device.token.utf8)
        let target = try DeviceTarget(device.kind == .apns ? .apns : .fcm, token: Secret(raw))
        let format = TokenFormat.allCases[trial(TokenFormat.allCases.count)]
        let box = try TokenBox.encrypt(target, to: pair.publicKey, format, world: world)
        let (rumor, wraps) = try MarmotMaterial(pair, world: world).trigger([box], format, wraps: 2)
        let values = [raw, rumor.id, rumor.pubkey.bytes, box.reveal { Array($0.prefix(48)) }]
        remember(device.token, values, wraps, life)
        for wrap in [wraps[0], wraps[0], wraps[1]] { nostr.inject(wrap) }
    }

    private func trial(_ bound: Int) -> Int { Int(world.random(below: Int64(bound))) }

    private func remember(_ token: String, _ values: [[UInt8]], _ wraps: [NostrEvent], _ life: Int) {
        var values = values
        for wrap in wraps { values += [wrap.id, wrap.pubkey.bytes] + [wrap.signature].compactMap(\.self) }
        state.withLock { state in
            state.ledger.published(token, in: life)
            if state.first.count < Self.kept { state.first += values }
            state.last = (state.last + values).suffix(Self.kept)
        }
    }

    // MARK: The disk

    /// Looks for what was published in every file below a directory: as bytes, as hex, as base64.
    private func search(_ directory: String) {
        let values = state.withLock { $0.first + $0.last }
        let forms = values.flatMap { value in
            [
                Data(value), Data(Hex.encode(value).utf8),
                Data(Base64.text(value).utf8.prefix(value.count / 3 * 4))
            ]
        }
        let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        var (files, hits) = (0, 0)
        for name in names {
            guard let data = FileManager.default.contents(atPath: "\(directory)/\(name)") else { continue }
            files += 1
            hits += forms.count { data.range(of: $0) != nil }
        }
        state.withLock { $0.ledger.searched(files: files, hits: hits) }
    }
}
