import MemoryStore
import PushModel
import Synchronization

/// A push service that has its days: outages, silence, limits that shrink, connections that end.
final class SimulatedPushService: Sendable {
    /// How it is today.
    struct Mood: Sendable {
        /// Percent of requests that are refused for now.
        var busy = 0
        /// Percent that are never answered; half of them were processed.
        var silent = 0
        /// Percent whose connection ends: before the request is looked at, or after.
        var unprocessed = 0
        var cut = 0
        /// Requests of one process that may be under way at once.
        var window = 16
        var latency = Duration.milliseconds(1) ... .milliseconds(40)

        static let good = Mood()
    }

    let machine: SimulatedExecutor
    private let scheduler: Scheduler
    private let book: Book
    private let mood = Mutex(Mood())
    /// Devices that are gone, since when.
    private let gone = Mutex<[Int: UnixTime]>([:])

    init(_ scheduler: Scheduler, book: Book) {
        self.scheduler = scheduler
        self.book = book
        machine = scheduler.machine()
    }

    func turn(_ new: Mood) { mood.withLock { $0 = new } }
    var window: Int { mood.withLock(\.window) }

    func remove(device: Int) { gone.withLock { $0[device] = $0[device] ?? scheduler.now } }

    /// What the network and the service make of one request.
    enum Fate: Sendable {
        case answered(Outcome, Reason)
        case unprocessed
        /// The connection ended, or nothing came, and the request may have been processed.
        case unknown
        case silence
    }

    /// Processes a request whose bytes have left.
    ///
    /// - Parameter arrives: called when the service takes the request up.
    func process(_ push: OwedPush, _ number: Int, device: Int, arrives: () -> Void) async -> Fate {
        let mood = mood.withLock(\.self)
        await scheduler.pause(mood.latency)
        if scheduler.chance(mood.unprocessed) { return .unprocessed }
        let isSilent = scheduler.chance(mood.silent)
        if isSilent, scheduler.chance(50) { return .silence }
        let isCut = scheduler.chance(mood.cut)
        if isCut, scheduler.chance(50) { return .unknown }
        arrives()
        let fate = judge(push, number, device, mood)
        await scheduler.pause(mood.latency)
        if isSilent { return .silence }
        return isCut ? .unknown : fate
    }

    private func judge(_ push: OwedPush, _ number: Int, _ device: Int, _ mood: Mood) -> Fate {
        if scheduler.chance(mood.busy) { return .answered(.retry(after: nil), .serviceUnavailable) }
        if let since = gone.withLock({ $0[device] }) {
            book.unregistered(device)
            book.refused(number)
            return .answered(.unregistered(since: since), .unregisteredAPNs)
        }
        book.accepted(number, push.id, at: scheduler.now)
        return .answered(.accepted, .ok)
    }
}

/// One process's way to the push service, for one lane.
final class SimulatedProvider: DirectProvider {
    struct Slot: SendSlot {
        fileprivate let provider: SimulatedProvider
        func release() { provider.giveBack() }
    }

    private struct State {
        var underWay = 0
        var waiters: [(number: Int, continuation: UnsafeContinuation<Bool, Never>)] = []
        var nextWaiter = 0
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
    /// Breaks the relay on purpose: told of each push before it is sent.
    private let before: (@Sendable (OwedPush) async -> Void)?
    private let state = Mutex(State())

    init(
        _ lane: LaneName, _ machine: SimulatedExecutor, life: Book.Life, owner: OwnerID, world: World,
        service: SimulatedPushService, database: SimulatedDatabase?, book: Book,
        before: (@Sendable (OwedPush) async -> Void)?
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
        self.before = before
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
        return Slot(provider: self)
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
        await before?(push)
        // A request waits in buffers for a moment, as on the way to a socket.
        await scheduler.pause(.zero ... .milliseconds(3))
        let sentAt = world.now()
        guard world.instant() <= leased.sendBefore else {
            return Answer(.retry(after: nil), .leaseRanOut, sentAt: sentAt, fate: .unprocessed)
        }
        guard let (number, device) = Peers.read(push.message) else {
            return Answer(.rejected, .badPath, sentAt: sentAt)
        }
        book.sending(push, number, by: life)
        let fate = await fate(of: push, number, device)
        switch fate {
        case .answered(let outcome, let reason):
            switch outcome {
            case .retry: break
            // Older than the registration: it goes on.
            case .unregistered(let since?) where since < push.touchedAt: break
            default: book.answered(number, push.id, to: life)
            }
            return Answer(outcome, reason, sentAt: sentAt)
        case .unprocessed:
            return Answer(.retry(after: nil), .notReached, sentAt: sentAt, fate: .unprocessed)
        case .unknown:
            spend(push, number)
            return Answer(.retry(after: nil), .connectionLost, sentAt: sentAt, fate: .unknown)
        case .silence:
            spend(push, number)
            return Answer(.retry(after: nil), .deadlineExceeded, sentAt: sentAt, fate: .unknown)
        }
    }

    /// A call may have rung: who sent it must not send it again, and owes it no more.
    private func spend(_ push: OwedPush, _ number: Int) {
        guard push.pushClass == .urgent else { return }
        book.refused(number)
        book.answered(number, push.id, to: life)
    }

    /// The service acts whatever becomes of who asked; its answer reaches a process that lives.
    private func fate(of push: OwedPush, _ number: Int, _ device: Int) async -> SimulatedPushService.Fate {
        let fate = await withTaskExecutorPreference(service.machine) {
            await service.process(push, number, device: device) { self.checkOwner(of: push, number) }
        }
        // The request's own deadline.
        if case .silence = fate { await scheduler.pause(.seconds(9) ... .seconds(10)) }
        return fate
    }

    private func checkOwner(of push: OwedPush, _ number: Int) {
        guard let database else { return }
        let holder = database.shared.holder(ofRow: push.row)
        if holder?.id != push.id || holder?.owner != owner || holder?.epoch != push.epoch {
            book.record(.sentByStranger, number)
        }
    }
}
