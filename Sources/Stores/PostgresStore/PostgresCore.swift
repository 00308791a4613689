import Foundation
import PushModel
import Synchronization

/// What the threads of an engine share: waiting calls, connections, and the code for each kind of call.
final class PostgresCore: Sendable {
    let owner: Digest16
    let limits: PostgresLimits
    let connector: PostgresConnector
    let queue: WorkQueue
    let counts: OwedCounts
    let world: World
    let journal: Journal
    let lost = LostBackends()
    let floors: RowFloors
    let deaths: DeathClock

    let endings: PostgresEndings
    let accepting: PostgresAccepting
    let settling: PostgresSettling
    let changing: PostgresChanging
    let claiming: PostgresClaiming
    let owners: PostgresOwners
    let sweeping: PostgresSweeping

    /// Records that cannot be read, until they have been set aside.
    private let unreadable = Mutex<Set<SeenRecord>>([])

    private struct State {
        var threads = 0
        var ended: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    init(
        owner: Digest16, limits: PostgresLimits, connector: PostgresConnector, world: World, journal: Journal
    ) {
        self.owner = owner
        self.limits = limits
        self.connector = connector
        self.world = world
        self.journal = journal
        queue = WorkQueue(limits: limits)
        counts = OwedCounts(limits: limits)
        floors = RowFloors(world)
        deaths = DeathClock(limits: limits, world: world, journal: journal)
        accepting = PostgresAccepting(owner: owner, limits: limits, counts: counts)
        settling = PostgresSettling(owner: owner, limits: limits, counts: counts)
        endings = PostgresEndings(owner: owner, limits: limits, counts: counts)
        changing = PostgresChanging(
            accepting: accepting, settling: settling, counts: counts, endings: endings)
        claiming = PostgresClaiming(
            owner: owner, limits: limits, counts: counts, deaths: deaths, settling: settling,
            journal: journal)
        owners = PostgresOwners(
            owner: owner, limits: limits, counts: counts, deaths: deaths, lost: lost, world: world,
            endings: endings)
        sweeping = PostgresSweeping(owner: owner, limits: limits, floors: floors, deaths: deaths)
    }

    func start() {
        state.withLock { $0.threads = limits.connections }
        for _ in 0..<limits.connections {
            let thread = Thread { [self] in
                Connection(self).run()
                ended()
            }
            thread.name = "postgres"
            thread.stackSize = 1 << 20
            thread.start()
        }
    }

    /// Sets records aside that cannot be read; nobody waits for it.
    func setAside(_ records: [SeenRecord]) {
        guard !records.isEmpty else { return }
        let isFirst = unreadable.withLock { unreadable in
            defer {
                unreadable.formUnion(records.prefix(max(0, limits.unreadableAtOnce - unreadable.count)))
            }
            return unreadable.isEmpty
        }
        guard isFirst else { return }
        let work = Job.Work.single { [self] session throws(PostgresFault) in
            let records = unreadable.withLock { unreadable in
                defer { unreadable = [] }
                return Array(unreadable)
            }
            let moved = try PostgresRecords.setAside(records, ahead: limits.aheadMilliseconds, session).moved
            return { [journal] in
                guard moved > 0 else { return }
                journal.note(
                    "records cannot be read and are set aside",
                    [.count: moved, .code: ErrorCode(StoreError(.corrupt))], level: .error)
            }
        }
        // They are met again.
        add(work, .bulk) { [self] _ in unreadable.withLock { $0 = [] } }
    }

    private func ended() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            defer { state.ended = [] }
            return state.ended
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until every thread has ended: calls under way have their own bounds.
    func untilEnded() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.threads == 0 { return true }
                state.ended.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
