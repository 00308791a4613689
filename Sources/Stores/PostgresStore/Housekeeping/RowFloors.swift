import PushModel
import Synchronization

/// No rows are left below these values: searches for the oldest row begin there.
///
/// While somebody holds an old snapshot, PostgreSQL keeps every row and index entry that was deleted
/// since, and a look from the low end of an index walks over all of them: over millions in an hour.
final class RowFloors: Sendable {
    private struct Floor<Value: Sendable>: Sendable {
        var value: Value
        /// Then one search starts from the beginning, for rows that were skipped: a row that another process
        /// had locked, or one that was written by a clock far behind.
        var until: ContinuousClock.Instant
    }

    private static let life: Duration = .seconds(3_600)

    private struct State {
        var marks: Floor<Int64>?
        var pushes: Floor<UnixTime>?
    }

    private let state = Mutex(State())
    private let world: World

    init(_ world: World) { self.world = world }

    private func standing<Value>(_ floor: Floor<Value>?) -> Value? {
        floor.flatMap { $0.until > world.instant() ? $0.value : nil }
    }

    private func raised<Value>(_ floor: Floor<Value>?, to value: Value) -> Floor<Value> {
        let now = world.instant()
        let until = floor.flatMap { $0.until > now ? $0.until : nil } ?? now + Self.life
        return Floor(value: value, until: until)
    }

    /// The first minute that may have a mark past its time.
    var firstMarkMinute: Int64 { state.withLock { standing($0.marks) } ?? Int64(Int32.min) }

    func noteMarks(dropped minute: Int64) {
        state.withLock { $0.marks = raised($0.marks, to: minute) }
    }

    /// No owed push has an older id.
    var firstPushID: PushID {
        PushID(at: state.withLock { standing($0.pushes) } ?? UnixTime(milliseconds: 0), random: 0, 0)
    }

    /// Clocks of relays may be this far apart, and one that is behind may accept a push with an older id.
    private static let drift = Duration.seconds(60)

    func notePushes(oldest time: UnixTime) {
        state.withLock { $0.pushes = raised($0.pushes, to: time - Self.drift) }
    }
}
