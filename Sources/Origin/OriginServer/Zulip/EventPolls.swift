package import PushModel
import Synchronization
package import ZulipPush

/// The event queues of all users, and the polls that wait for them.
///
/// In memory only: after a restart every client is told that its queue is unknown, and opens another one with
/// the current state.
package final class EventPolls: Sendable {
    fileprivate enum Wake { case woken, timeUp, noRoom }

    fileprivate struct Waiting {
        let queue: OriginQueues.ID
        let until: UnixTime
        let turn: CheckedContinuation<Wake, Never>
    }

    fileprivate struct State {
        var queues: [String: OriginQueues] = [:]
        /// Of each user who has queues.
        var realms: [String: String] = [:]
        /// By user, and then by a number of its own.
        var waiting: [String: [UInt64: Waiting]] = [:]
        var waitingCount = 0
        var next: UInt64 = 0
        var isEnding = false
    }

    private let state = Mutex(State())
    private let looks: RegularLooks
    private let settings: ZulipOriginSettings
    private let world: World

    /// How often expired polls are looked for: often enough for the 25 s of a poll.
    private static let step = Duration.seconds(1)
    /// The same while no poll waits: it only bounds how long a wake-up could be missed.
    private static let restStep = Duration.seconds(30)

    package init(_ settings: ZulipOriginSettings, _ world: World) {
        self.settings = settings
        self.world = world
        looks = RegularLooks(world)
    }

    /// Polls that wait now.
    package var waitingCount: Int { state.withLock(\.waitingCount) }

    /// To be called in the user's turn, so that no event is between the queue and the state beside it.
    package func open(_ user: String, of realm: String, types: Set<String>?) -> OriginQueues.ID {
        var generator = WorldGenerator(world: world)
        let (id, turns) = state.withLock { state -> (OriginQueues.ID, [CheckedContinuation<Wake, Never>]) in
            state.realms[user] = realm
            let id = state.queues[user, default: fresh].open(
                types: types, now: world.now(), using: &generator)
            // The poll of a queue that was dropped ends with it; otherwise one user's polls would hold places
            // for nothing.
            let queues = state.queues[user]
            return (id, state.wake(user) { queues?.has($0.queue) != true })
        }
        for turn in turns { turn.resume(returning: .woken) }
        return id
    }

    private var fresh: OriginQueues {
        OriginQueues(limit: settings.queuesPerUser, eventLimit: settings.eventsPerQueue)
    }

    package func add(_ events: [ZulipEvent], of user: String) {
        guard !events.isEmpty else { return }
        let turns = state.withLock { state -> [CheckedContinuation<Wake, Never>] in
            guard let touched = state.queues[user]?.add(events), !touched.isEmpty else { return [] }
            return state.wake(user) { touched.contains($0.queue) }
        }
        for turn in turns { turn.resume(returning: .woken) }
    }

    /// Tells all clients of a realm.
    package func tell(_ event: ZulipEvent, in realm: String) {
        let users = state.withLock { state in state.realms.filter { $0.value == realm }.map(\.key) }
        for user in users { add([event], of: user) }
    }

    package func close(_ user: String, _ queue: OriginQueues.ID) throws(OriginRefusal) {
        let (turns, refusal) = state.withLock {
            state -> ([CheckedContinuation<Wake, Never>], OriginRefusal?) in
            do throws(OriginRefusal) {
                try state.queues[user, default: fresh].close(queue)
            } catch { return ([], error) }
            if state.queues[user]?.count == 0 { (state.queues[user], state.realms[user]) = (nil, nil) }
            return (state.wake(user) { $0.queue == queue }, nil)
        }
        for turn in turns { turn.resume(returning: .woken) }
        if let refusal { throw refusal }
    }

    /// Closes all queues of a user who was removed, so that they do not receive events of a later user with
    /// that name.
    package func closeAll(of user: String) {
        let turns = state.withLock { state -> [CheckedContinuation<Wake, Never>] in
            (state.queues[user], state.realms[user]) = (nil, nil)
            return state.wake(user) { _ in true }
        }
        for turn in turns { turn.resume(returning: .woken) }
    }

    /// Waits for the next events behind `last`.
    ///
    /// - Parameter blocks: false: with none there is a heartbeat at once.
    /// - Returns: the answer's body; `nil`: too many polls wait.
    /// - Throws: `.unknownQueue`.
    package func poll(
        _ user: String, _ queue: OriginQueues.ID, after last: Int64, blocks: Bool = true
    ) async throws(OriginRefusal) -> [UInt8]? {
        // Woken by events, by the end of the queue, or by time.
        while true {
            let now = world.now()
            switch try look(user, queue, last, now) {
            case .answer(let body): return body
            case .wait(let until):
                guard blocks, !state.withLock(\.isEnding) else { return try beat(user, queue) }
                switch await wait(user, queue, until) {
                case .woken: continue
                case .timeUp: return try beat(user, queue)
                case .noRoom: return nil
                }
            }
        }
    }

    private func look(
        _ user: String, _ queue: OriginQueues.ID, _ last: Int64, _ now: UnixTime
    ) throws(OriginRefusal) -> OriginQueues.Poll {
        try state.withLock { state in
            Result { () throws(OriginRefusal) in
                try state.queues[user, default: fresh].poll(queue, after: last, now: now)
            }
        }.get()
    }

    private func beat(_ user: String, _ queue: OriginQueues.ID) throws(OriginRefusal) -> [UInt8] {
        try state.withLock { state in
            Result { () throws(OriginRefusal) in
                try state.queues[user, default: fresh].heartbeat(queue, now: world.now())
            }
        }.get()
    }

    private func wait(_ user: String, _ queue: OriginQueues.ID, _ until: UnixTime) async -> Wake {
        let number = state.withLock { state -> UInt64 in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (turn: CheckedContinuation<Wake, Never>) in
                let wakes = state.withLock { state -> [(CheckedContinuation<Wake, Never>, Wake)] in
                    if state.isEnding || Task.isCancelled { return [(turn, .timeUp)] }
                    // A client that polls again has lost its last poll; the new poll replaces it.
                    let others = state.wake(user) { $0.queue == queue }
                    guard state.waitingCount < settings.waitingPolls else {
                        return [(turn, .noRoom)] + others.map { ($0, .timeUp) }
                    }
                    state.waiting[user, default: [:]][number] = Waiting(
                        queue: queue, until: until, turn: turn)
                    state.waitingCount += 1
                    return others.map { ($0, .timeUp) }
                }
                looks.wake()
                for (turn, wake) in wakes { turn.resume(returning: wake) }
            }
        } onCancel: {
            state.withLock { $0.remove(user, number) }?.resume(returning: .timeUp)
        }
    }

    // MARK: Time

    /// Answers polls that have waited long enough, until ``end()`` or the task is cancelled.
    package func run() async {
        // It ends by cancellation, or with ``end()``.
        while !state.withLock(\.isEnding), !Task.isCancelled {
            await looks.next(every: Self.step) { waitingCount == 0 ? Self.restStep : nil }
            lookAtClock()
        }
        end()
    }

    func lookAtClock() {
        let now = world.now()
        let turns = state.withLock { state -> [CheckedContinuation<Wake, Never>] in
            state.waiting.keys.flatMap { user in
                state.wake(user) {
                    // Also where the clock was set back.
                    $0.until <= now || $0.until.since(now) > ZulipOriginLimits.heartbeat
                }
            }
        }
        for turn in turns { turn.resume(returning: .timeUp) }
    }

    /// Closes queues that were not polled for long.
    package func sweep() {
        let now = world.now()
        state.withLock { state in
            for user in Array(state.queues.keys) {
                state.queues[user]?.close(before: now)
                if state.queues[user]?.count == 0 { (state.queues[user], state.realms[user]) = (nil, nil) }
            }
        }
    }

    /// Answers all waiting polls with a heartbeat; from then on no poll waits.
    package func end() {
        let turns = state.withLock { state -> [CheckedContinuation<Wake, Never>] in
            state.isEnding = true
            return state.waiting.keys.flatMap { state.wake($0) { _ in true } }
        }
        looks.wake()
        for turn in turns { turn.resume(returning: .timeUp) }
    }
}

extension EventPolls.State {
    fileprivate mutating func wake(
        _ user: String, where isMeant: (EventPolls.Waiting) -> Bool
    ) -> [CheckedContinuation<EventPolls.Wake, Never>] {
        guard let waiting = waiting[user] else { return [] }
        return waiting.filter { isMeant($0.value) }.keys.compactMap { remove(user, $0) }
    }

    fileprivate mutating func remove(
        _ user: String, _ number: UInt64
    ) -> CheckedContinuation<EventPolls.Wake, Never>? {
        guard let found = waiting[user]?.removeValue(forKey: number) else { return nil }
        if waiting[user]?.isEmpty == true { waiting[user] = nil }
        waitingCount -= 1
        return found.turn
    }
}
