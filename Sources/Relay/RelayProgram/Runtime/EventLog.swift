import Delivery
import PushModel
import Synchronization

/// Log lines at `info` for single events: one line each, but no more in a minute than somebody could read.
/// Further events are counted, and the count is logged with the next minute's first line.
final class EventLog: Sendable {
    /// A stranger's sign-ups, or the end of an app's registrations, come by thousands.
    static let linesPerMinute = 60

    private struct State {
        var minute: ContinuousClock.Instant
        var lines = 0
        var untold = 0
    }

    private let journal: Journal
    private let world: World
    private let state: Mutex<State>

    init(_ journal: Journal, _ world: World) {
        self.journal = journal
        self.world = world
        state = Mutex(State(minute: world.instant()))
    }

    func note(_ event: StaticString, _ fields: [(LogKey, any LogSafe)]) {
        let now = world.instant()
        let (tells, untold) = state.withLock { state -> (Bool, Int) in
            var untold = 0
            if now - state.minute >= .seconds(60) {
                (untold, state) = (state.untold, State(minute: now))
            }
            guard state.lines < Self.linesPerMinute else {
                state.untold += 1
                return (false, 0)
            }
            state.lines += 1
            return (true, untold)
        }
        if untold > 0 { journal.note("events not logged", [.count: untold]) }
        if tells { journal.note(event, fields) }
    }
}

/// A registration as a log may name it: the beginning of the keyed digest under which the store has it.
/// Without the storage keys it says nothing of token, account or origin; the same registration has the same
/// one.
struct RegistrationID: LogSafe {
    let logText: String

    init(_ record: Digest16) {
        let digits = String(record.high, radix: 16)
        logText = String((String(repeating: "0", count: 16 - digits.count) + digits).prefix(8))
    }
}

/// What push services have refused, lane by lane and word by word: said once a minute.
final class RefusalRates: Sendable {
    private struct Kind: Hashable {
        let lane: LaneName
        let outcome: OutcomeKind
        let reason: Reason
    }

    /// Lines of one minute: lanes and reasons of a configuration; what comes beyond is one line of its own.
    static let kinds = 32

    private struct State {
        var counts: [Kind: Int] = [:]
        var others = 0
        var since: ContinuousClock.Instant
    }

    private let world: World
    private let state: Mutex<State>

    init(_ world: World) {
        self.world = world
        state = Mutex(State(since: world.instant()))
    }

    /// Each answer. Called under a lane's lock.
    func note(_ attempt: Attempt) {
        guard attempt.outcome != .accepted else { return }
        let kind = Kind(lane: attempt.lane, outcome: attempt.outcome, reason: attempt.reason)
        state.withLock { state in
            if state.counts[kind] != nil || state.counts.count < Self.kinds {
                state.counts[kind, default: 0] += 1
            } else {
                state.others += 1
            }
        }
    }

    /// Says what has come since a minute ago, once a minute.
    func tell(_ journal: Journal) {
        let now = world.instant()
        let told = state.withLock { state -> State? in
            guard now - state.since >= .seconds(60) else { return nil }
            defer { state = State(since: now) }
            return state
        }
        guard let told else { return }
        let seconds = (now - told.since).components.seconds
        for (kind, count) in told.counts.sorted(by: { $0.value > $1.value }) {
            journal.note(
                "push service refused",
                [
                    .lane: kind.lane, .outcome: kind.outcome, .reason: kind.reason, .count: count,
                    .seconds: seconds
                ])
        }
        if told.others > 0 {
            journal.note("push service refused", [.count: told.others, .seconds: seconds])
        }
    }
}
