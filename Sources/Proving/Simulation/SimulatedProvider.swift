import APNs
import Delivery
import FCM
import HTTP2Client
import MemoryStore
import PushModel
import Synchronization

/// One process's way to the push service, for one lane.
final class SimulatedProvider: DirectProvider {
    struct Slot: SendSlot {
        fileprivate let provider: SimulatedProvider
        func release() { provider.giveBack() }
    }

    private struct State {
        var patience: PoolPatience
        var isWindingDown = false
        /// Requests that are not answered yet, and that somebody waits for.
        var exchanges: [Int: SimulatedExchange] = [:]
        var nextExchange = 0
        var underWay = 0
        /// Closings of the service that this connection has outlived; `nil`: there is none.
        var connection: Int?
        /// How many there have been: the number of the one that stands.
        var connections = 0
        /// Deafenings of the service that were before it stood: of a later one it is a victim.
        var deafenings = 0
        /// A request on it has expired, and nothing was answered since: where there is no other, one is
        /// opened beside it, and goes first (decision 0077).
        var isDoubted = false
        /// Connections in a row that ended before anything was answered on them.
        var failures = 0
        var waiters: [(number: Int, continuation: UnsafeContinuation<Bool, Never>)] = []
        var nextWaiter = 0
    }

    /// What is broken on purpose, to see that it is found.
    struct Sabotage: Sendable {
        /// Told of each push before it is sent; what it answers, is answered, and the push is not sent.
        var before: (@Sendable (OwedPush) async -> Answer?)?
        /// Changes what the lane hears.
        var after: (@Sendable (OwedPush, Answer) -> Answer)?
        /// A connection that was closed while idle counts as one that failed.
        var waitsAfterIdle = false
        /// What no service has looked at is sent again and again, and the lane hears of one attempt.
        var insists = false
        /// A connection on which requests expire is kept.
        var keepsTheDeaf = false
        /// A page counts as the service's own refusal.
        var believesPages = false
        /// An answer that comes late is thrown away.
        var losesLate = false
    }

    let lane: LaneName
    let executor: (any TaskExecutor)?
    private let life: PushLedger.Life
    private let owner: OwnerID
    private let world: World
    private let scheduler: Scheduler
    private let service: SimulatedPushService
    private let database: SimulatedDatabase?
    private let ledger: PushLedger
    /// A client that cannot send for want of a token.
    private let hasToken: @Sendable () -> Bool
    /// What is broken on purpose.
    private let sabotage: Sabotage
    /// So long after its hand-over a request that was given up is listened to.
    private let listens: Duration
    private let state: Mutex<State>

    init(
        _ lane: LaneName, _ machine: SimulatedExecutor, life: PushLedger.Life, owner: OwnerID, world: World,
        service: SimulatedPushService, database: SimulatedDatabase?, ledger: PushLedger,
        hasToken: @escaping @Sendable () -> Bool, sabotage: Sabotage
    ) {
        self.lane = lane
        executor = machine
        self.life = life
        self.owner = owner
        self.world = world
        scheduler = machine.scheduler
        self.service = service
        self.database = database
        self.ledger = ledger
        self.hasToken = hasToken
        self.sabotage = sabotage
        var options = HTTP2Options()
        options.requestDeadline =
            lane.service == .apns ? APNsProvider.requestDeadline : FCMProvider.requestDeadline
        listens = options.lateAnswers
        state = Mutex(State(patience: PoolPatience(options: options)))
    }

    /// Cancelled: that is its end.
    func run() async throws { try await world.sleep(world.instant() + .seconds(1_000_000)) }

    func reserve() async throws(CancellationError) -> Slot {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let isGranted = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
                let now = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.underWay < service.window {
                        state.underWay += 1
                        return true
                    }
                    state.waiters.append((number, continuation))
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
                guard let place = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
                return state.waiters.remove(at: place).continuation
            }
            waiter?.resume(returning: false)
        }
        guard isGranted else { throw CancellationError() }
        await connect()
        if Task.isCancelled {
            giveBack()
            throw CancellationError()
        }
        return Slot(provider: self)
    }

    /// Opens a connection where none stands.
    private func connect() async {
        let (closings, deafenings) = (service.timesClosed, service.timesDeafened)
        let wait = state.withLock { state -> Duration? in
            let isClosed = state.connection.map { $0 < closings && state.underWay <= 1 } ?? true
            guard isClosed || state.isDoubted && !sabotage.keepsTheDeaf else { return nil }
            let ended = closings - (state.connection ?? closings)
            state.connections += 1
            (state.connection, state.deafenings, state.isDoubted) = (closings, deafenings, false)
            // Such a client opens another at once, and that one is closed without an answer too.
            guard sabotage.waitsAfterIdle, ended > 0 else { return .zero }
            state.failures += ended
            return min(.seconds(60), .seconds(1) * (1 << min(state.failures - 1, 6)))
        }
        guard let wait else { return }
        await scheduler.pause(.milliseconds(10) + wait / 2 ... .milliseconds(100) + wait)
    }

    fileprivate func giveBack() {
        let next = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            guard state.underWay <= service.window, !state.waiters.isEmpty else {
                state.underWay -= 1
                return nil
            }
            return state.waiters.removeFirst().continuation
        }
        next?.resume(returning: true)
    }

    func send(_ leased: LeasedPush, on slot: Slot) async -> Answer {
        defer { giveBack() }
        let push = leased.push
        if let answer = await sabotage.before?(push) { return answer }
        var answer = await sendNow(leased)
        while sabotage.insists, !Task.isCancelled, answer.fate == .unprocessed,
            world.instant() < leased.sendBefore
        {
            await scheduler.pause(.milliseconds(100) ... .seconds(1))
            answer = await sendNow(leased)
        }
        return sabotage.after?(push, answer) ?? answer
    }

    private func sendNow(_ leased: LeasedPush) async -> Answer {
        let push = leased.push
        // A request waits in buffers for a moment, as on the way to a socket.
        await scheduler.pause(.zero ... .milliseconds(3))
        let sentAt = world.now()
        guard world.instant() <= leased.sendBefore else {
            return Answer(.retry(after: nil), .leaseRanOut, sentAt: sentAt, fate: .unprocessed)
        }
        guard let target = Peers.read(push.message) else {
            return Answer(.rejected, .badPath, sentAt: sentAt)
        }
        let number = target.number
        if push.custody == .durable { ledger.tries(number, push.id, in: lane, by: life) }
        guard hasToken() else {
            return Answer(.retry(after: nil), .credentialUnavailable, sentAt: sentAt, fate: .unprocessed)
        }
        if target.device >= Traits.MadeUp.byUs {
            ledger.refused(number)
            return Answer(.unregistered(since: nil), .badDeviceToken, sentAt: sentAt, fate: .local)
        }
        if push.custody == .durable {
            ledger.sending(push, target, by: life) { row in
                database.map { $0.shared.holder(ofRow: row)?.owner == owner } ?? true
            }
        }
        let (fate, exchange) = await ask(push, target)
        ledger.returned(push, target, fate, to: life)
        switch fate {
        case .answered(let answer):
            let answer = read(answer, sentAt: sentAt)
            if push.custody == .durable, ends(push, answer) { ledger.answered(number, push.id, to: life) }
            return answer
        case .unprocessed:
            return Answer(.retry(after: nil), .notReached, sentAt: sentAt, fate: .unprocessed)
        case .unknown:
            if Self.mayBeLast(push) { ledger.givenUp(number) }
            return Answer(.retry(after: nil), .connectionLost, sentAt: sentAt, fate: .unknown)
        case .silence:
            if Self.mayBeLast(push) { ledger.givenUp(number) }
            var answer = Answer(.retry(after: nil), .deadlineExceeded, sentAt: sentAt, fate: .unknown)
            answer.late = lateAnswer(to: exchange, push, target, sentAt: sentAt)
            return answer
        }
    }

    /// What the relay's own tables make of it.
    private func read(_ answer: WireAnswer, sentAt: UnixTime) -> Answer {
        var (outcome, reason, fate) = answer.reading(of: lane.service, now: world.now())
        if sabotage.believesPages, answer.meaning == .foreign {
            (outcome, reason, fate) = (.rejected, .unknown, .answered)
        }
        if answer.meaning != .foreign { ledger.heard(outcome, in: lane, by: life) }
        state.withLock { $0.failures = 0 }
        return Answer(outcome, reason, sentAt: sentAt, fate: fate)
    }

    /// Whether nothing more is to be sent after that answer.
    private func ends(_ push: OwedPush, _ answer: Answer) -> Bool {
        switch answer.outcome {
        case .retry, .misconfigured(.credential): false
        // Older than the registration: it goes on.
        case .unregistered(let since?) where since < push.touchedAt: false
        case .unregistered where lane.environment == .production && answer.reason == .badDeviceToken: false
        default: true
        }
    }

    /// Of unknown fate once more, it need not be sent again.
    private static func mayBeLast(_ push: OwedPush) -> Bool {
        push.pushClass == .urgent || push.attempts.unknown + 1 >= DeliveryLimits().unknownSends
    }

    // MARK: On the wire

    /// The service acts whatever becomes of who asked; its answer reaches a process that lives, and waits.
    private func ask(
        _ push: OwedPush, _ target: Peers.Read
    ) async -> (SimulatedPushService.Fate, SimulatedExchange) {
        let begun = world.instant()
        let (exchange, end, isHeard) = state.withLock { state in
            state.nextExchange += 1
            let exchange = SimulatedExchange(
                state.nextExchange, begun: begun, connection: state.connections)
            state.exchanges[exchange.number] = exchange
            let allowance = state.patience.allowance(at: begun)
            let end = min(begun + allowance.span, allowance.until ?? begun + allowance.span)
            return (exchange, end, state.deafenings == service.timesDeafened)
        }
        let deadline = scheduler.at(end) { exchange.giveUp() }
        let fate = await exchange.answer {
            guard isHeard else { return }
            service.machine.begin {
                let fate = await self.service.process(push, target) {
                    self.checkOwner(of: push, target.number)
                }
                // It never comes.
                if case .silence = fate { return }
                if exchange.came(fate) { self.ledger.cameLate(fate, for: push, target, to: self.life) }
            }
        }
        scheduler.callOff(deadline)
        noteEnd(of: exchange, fate)
        return (fate ?? .silence, exchange)
    }

    /// A request was answered, or was not answered in time.
    private func noteEnd(of exchange: SimulatedExchange, _ fate: SimulatedPushService.Fate?) {
        let now = world.instant()
        state.withLock { state in
            state.exchanges[exchange.number] = nil
            switch fate {
            case .answered?: state.patience.answered(after: now - exchange.begun, at: now)
            case nil, .silence?: break
            default: return
            }
            guard exchange.connection == state.connections else { return }
            state.isDoubted = fate == nil
        }
    }

    /// Whoever gave a request up may hear of it yet.
    private func lateAnswer(
        to exchange: SimulatedExchange, _ push: OwedPush, _ target: Peers.Read, sentAt: UnixTime
    ) -> LateAnswer? {
        guard !state.withLock(\.isWindingDown) else { return nil }
        return LateAnswer { [self] in
            let end = scheduler.at(exchange.begun + listens) { exchange.close() }
            defer { scheduler.callOff(end) }
            let fate = await withTaskCancellationHandler {
                await exchange.answer()
            } onCancel: {
                exchange.close()
            }
            // A connection that ends says nothing of it.
            guard case .answered(let answer)? = fate else { return nil }
            noteEnd(of: exchange, fate)
            let word = read(answer, sentAt: sentAt)
            ledger.returnedLate(push, target, answer, ends: ends(push, word), to: life)
            return sabotage.losesLate ? nil : word
        }
    }

    /// The process stops.
    func windDown(within span: Duration) {
        let end = world.instant() + span
        state.withLock { state in
            state.isWindingDown = true
            state.patience.end(at: end)
        }
        scheduler.at(end) {
            let left = self.state.withLock { Array($0.exchanges.values) }
            for exchange in left.sorted(by: { $0.number < $1.number }) { exchange.giveUp() }
        }
    }

    private func checkOwner(of push: OwedPush, _ number: Int) {
        guard let database, push.custody == .durable else { return }
        guard let holder = database.shared.holder(ofRow: push.row), holder.id == push.id else {
            return ledger.takenUnowed(push, number, by: life)
        }
        if holder.owner != owner || holder.epoch != push.epoch { ledger.record(.sentByStranger, number) }
    }
}
