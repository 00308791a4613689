import NIOCore
import PushModel
import SessionPush
import Simulators
import Synchronization

/// Session's part of a chaos trial: phones that subscribe, and a swarm of three storage servers that outlives
/// each relay.
final class ChaosSession: ChaosCompanion {
    static let discussion = """
        Session's phones subscribe beside it, and three storage servers of this process tell of messages: \
        each relay that is waited for shows the swarm every subscription that was acknowledged, a message is \
        never pushed under two names, and what the last one is told wakes each phone exactly once. What a \
        dead relay is told is counted.
        """

    private struct State {
        var ledger = ChaosSessionLedger()
        var keys: [SessionAccountKey] = []
        /// By device token, and those of them that are subscribed.
        var phones: [String: SubscribingPhone] = [:]
        var subscribed: [String: SubscribingPhone] = [:]
    }

    /// Accounts, and phones altogether: some accounts have several.
    private static let accounts = 30
    private static let phones = 60
    /// Messages for each account in the last life.
    private static let lastMessages = 3

    private let swarm: StagedSwarm
    private let service: ChaosService
    private let bundle: String
    private let world: World
    private let group: any EventLoopGroup
    private let state = Mutex(State())

    init(_ setting: ChaosSetting) async throws {
        (service, bundle, world, group) = (setting.service, setting.bundle, setting.world, setting.group)
        swarm = try await StagedSwarm(world)
    }

    func stop() async { await swarm.network.stop() }
    /// Nothing: the storage servers are asked.
    func watch() async {}

    var ledger: ChaosSessionLedger { state.withLock(\.ledger) }

    var instance: StagedInstance { swarm.instance("session-load") }

    func report(to report: inout BenchReport, directory _: String) -> Bool {
        ledger.write(to: &report)
        return ledger.hasPassed
    }

    /// False when the delivery is to none of its phones.
    func delivered(_ delivery: Delivery) -> Bool {
        state.withLock { state in
            guard let phone = state.phones[delivery.token] else { return false }
            // What a phone cannot open is a fault, and told as one.
            guard let hash = phone.hash(in: delivery.body, world) else {
                state.ledger.couldNotOpen()
                return true
            }
            let isApple = delivery.pushType != nil
            state.ledger.delivered(
                .init(token: phone.token, hash: hash), id: isApple ? delivery.id : "")
            return true
        }
    }

    // MARK: What happens

    /// Subscribes phone after phone, and lets the swarm tell of messages, until the trial is ending.
    func publish(_ trial: ChaosTrial) async throws {
        while !trial.shared.isEnding {
            if state.withLock({ $0.phones.count }) < Self.phones { try await subscribeOne(trial) }
            for _ in 0..<3 where !trial.shared.isEnding {
                try await tellOne(trial)
                try await trial.pause(milliseconds: 10 + trial.random.below(20))
            }
        }
    }

    /// The relay is gone: the storage servers lose what it had shown, so that what they have later was
    /// shown by its successor.
    func killed(_ trial: ChaosTrial) async throws {
        // They may be reading its last words still.
        try await trial.pause(milliseconds: 20)
        for node in StagedSwarm.nodes { swarm.network.forget(node) }
        state.withLock { $0.ledger.killed() }
    }

    /// Waits until the relay under trial has shown each storage server all that was acknowledged by now.
    func untilListening(_ trial: ChaosTrial) async throws {
        let promised = ledger.accounts
        let until = world.instant() + StagedSwarm.showSpan
        var missing = promised.subtracting(await swarm.shown())
        while !missing.isEmpty, world.instant() < until {
            try await trial.pause(milliseconds: 5)
            missing = promised.subtracting(await swarm.shown())
        }
        state.withLock { $0.ledger.looked(missing: missing.count) }
    }

    /// Lets the swarm tell the last relay of messages for everybody, and waits until they have arrived.
    func finish(_ trial: ChaosTrial) async throws {
        try await untilListening(trial)
        let life = ledger.life
        let accounts = state.withLock { $0.subscribed.values.map(\.account) }
        for _ in 0..<Self.lastMessages {
            for account in accounts { tell(account, in: life) }
        }
        let until = world.instant() + ChaosPlan.drainSpan
        while ledger.missing > 0, world.instant() < until { try await trial.pause(milliseconds: 20) }
        // A double that is still under way would be seen now.
        try await trial.pause(milliseconds: 500)
    }

    /// One message for one account that the relay under trial watches everywhere.
    private func tellOne(_ trial: ChaosTrial) async throws {
        // Read first: what is shown later was shown by this relay, or by a later one.
        let life = ledger.life
        let shown = await swarm.shown()
        let accounts = state.withLock { state in
            state.subscribed.values.map(\.account).filter { shown.contains(Self.bytes($0)) }
        }
        guard !accounts.isEmpty else { return }
        tell(accounts[trial.random.below(accounts.count)], in: life)
    }

    private func tell(_ account: AccountID, in life: Int) {
        let push = NoticeParts.message(account, bytes: 200, world)
        let hash = push.hash.reveal { String(decoding: $0, as: UTF8.self) }
        state.withLock { state in
            let tokens = state.subscribed.values.filter { $0.account == account }.map(\.token)
            state.ledger.told(hash, to: tokens, in: life)
        }
        swarm.network.store(push)
    }

    private static func bytes(_ account: AccountID) -> [UInt8] { account.bytes.reveal { Array($0) } }

    // MARK: Subscribing

    /// One more phone, of a new account or one that has phones: asks until it is answered, each time with the
    /// same bytes.
    private func subscribeOne(_ trial: ChaosTrial) async throws {
        let phone = try makePhone(trial)
        while !trial.shared.isEnding {
            guard let reply = await ask(phone, trial) else {
                try await trial.pause(milliseconds: 20)
                continue
            }
            switch phone.verdict(of: reply, world) {
            case .added, .updated:
                return state.withLock { state in
                    state.subscribed[phone.token] = phone
                    state.ledger.subscribed(Self.bytes(phone.account))
                }
            case .later: try await trial.pause(milliseconds: 50)
            default: return state.withLock { $0.ledger.wasRefused() }
            }
        }
    }

    private func makePhone(_ trial: ChaosTrial) throws -> SubscribingPhone {
        let made = try state.withLock { state in
            if state.keys.count < Self.accounts, trial.random.below(2) == 0 || state.keys.isEmpty {
                state.keys.append(try SessionMaterial.key(world))
                return state.keys[state.keys.count - 1]
            }
            return state.keys[trial.random.below(state.keys.count)]
        }
        let target = LoadDevice.make(trial.random.below(2) == 0 ? .apns : .fcm, world)
        service.register(target, bundle: bundle)
        let phone = try SubscribingPhone(target, watching: WatchedAccount(made), world)
        state.withLock { $0.phones[target.token] = phone }
        return phone
    }

    /// `nil` when there is no relay, or none that answers.
    private func ask(_ phone: SubscribingPhone, _ trial: ChaosTrial) async -> HTTPReply? {
        guard let address = trial.shared.address,
            // A relay that was killed a moment ago refuses; the phone comes back.
            let connection = try? await CallConnection.connect(
                host: address.host, port: address.port, eventLoop: group.next())
        else { return nil }
        defer { connection.close() }
        return await connection.ask(
            phone.request(host: "\(address.host):\(address.port)"), within: ChaosPlan.answerSpan)
    }
}
