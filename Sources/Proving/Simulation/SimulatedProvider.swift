import Delivery
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
        var underWay = 0
        /// Closings of the service that this connection has outlived; `nil`: there is none.
        var connection: Int?
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
    }

    let lane: LaneName
    let executor: (any TaskExecutor)?
    private let life: Book.Life
    private let owner: OwnerID
    private let world: World
    private let scheduler: Scheduler
    private let service: SimulatedPushService
    private let database: SimulatedDatabase?
    private let book: Book
    /// A client that cannot send for want of a token.
    private let hasToken: @Sendable () -> Bool
    /// What is broken on purpose.
    private let sabotage: Sabotage
    private let state = Mutex(State())

    init(
        _ lane: LaneName, _ machine: SimulatedExecutor, life: Book.Life, owner: OwnerID, world: World,
        service: SimulatedPushService, database: SimulatedDatabase?, book: Book,
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
        self.book = book
        self.hasToken = hasToken
        self.sabotage = sabotage
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
        let closings = service.timesClosed
        let wait = state.withLock { state -> Duration? in
            guard state.connection.map({ $0 < closings && state.underWay <= 1 }) ?? true else { return nil }
            let ended = closings - (state.connection ?? closings)
            state.connection = closings
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
        guard let (number, device) = Peers.read(push.message) else {
            return Answer(.rejected, .badPath, sentAt: sentAt)
        }
        if push.custody == .durable { book.tries(number, push.id, in: lane, by: life) }
        guard hasToken() else {
            return Answer(.retry(after: nil), .credentialUnavailable, sentAt: sentAt, fate: .unprocessed)
        }
        if device >= Traits.MadeUp.byUs {
            book.refused(number)
            return Answer(.unregistered(since: nil), .badDeviceToken, sentAt: sentAt, fate: .local)
        }
        if push.custody == .durable {
            book.sending(push, number, by: life) {
                database?.shared.holder(ofRow: $0)?.owner ?? owner == owner
            }
        }
        let fate = await fate(of: push, number, device)
        book.returned(number, push.id, to: life)
        switch fate {
        case .answered(let outcome, let reason):
            book.heard(outcome, reason, of: device, in: lane, by: life)
            state.withLock { $0.failures = 0 }
            switch outcome {
            case .retry, .misconfigured(.credential): break
            // Older than the registration: it goes on.
            case .unregistered(let since?) where since < push.touchedAt: break
            case .unregistered where lane.environment == .production && reason == .badDeviceToken: break
            default: if push.custody == .durable { book.answered(number, push.id, to: life) }
            }
            return Answer(outcome, reason, sentAt: sentAt)
        case .unprocessed:
            return Answer(.retry(after: nil), .notReached, sentAt: sentAt, fate: .unprocessed)
        case .foreign:
            return Answer(.retry(after: nil), .foreignAnswer, sentAt: sentAt, fate: .unprocessed)
        case .unknown:
            if Self.mayBeLast(push) { book.givenUp(number) }
            return Answer(.retry(after: nil), .connectionLost, sentAt: sentAt, fate: .unknown)
        case .silence(let late):
            if Self.mayBeLast(push) { book.givenUp(number) }
            var answer = Answer(.retry(after: nil), .deadlineExceeded, sentAt: sentAt, fate: .unknown)
            answer.late = late.flatMap { lateAnswer($0.outcome, $0.reason, of: device, sentAt: sentAt) }
            return answer
        }
    }

    /// Of unknown fate once more, it need not be sent again.
    private static func mayBeLast(_ push: OwedPush) -> Bool {
        push.pushClass == .urgent || push.attempts.unknown + 1 >= DeliveryLimits().unknownSends
    }

    /// Half of the answers that were waited for in vain come later, before the repeat or behind it.
    private func lateAnswer(
        _ outcome: Outcome, _ reason: Reason, of device: Int, sentAt: UnixTime
    ) -> LateAnswer? {
        guard scheduler.chance(50) else { return nil }
        let span = scheduler.random(in: .seconds(1) ... .seconds(90))
        return LateAnswer { [self] in
            await scheduler.pause(span...span)
            guard !Task.isCancelled else { return nil }
            book.heard(outcome, reason, of: device, in: lane, by: life)
            return Answer(outcome, reason, sentAt: sentAt)
        }
    }

    /// The service acts whatever becomes of who asked; its answer reaches a process that lives.
    private func fate(of push: OwedPush, _ number: Int, _ device: Int) async -> SimulatedPushService.Fate {
        let fate = await withTaskExecutorPreference(service.machine) {
            await service.process(push, number, device: device) { self.checkOwner(of: push, number) }
        }
        // The request's own deadline.
        if case .silence = fate { await scheduler.pause(.seconds(19) ... .seconds(20)) }
        return fate
    }

    private func checkOwner(of push: OwedPush, _ number: Int) {
        guard let database, push.custody == .durable else { return }
        let holder = database.shared.holder(ofRow: push.row)
        if holder?.id != push.id || holder?.owner != owner || holder?.epoch != push.epoch {
            book.record(.sentByStranger, number)
        }
    }
}
