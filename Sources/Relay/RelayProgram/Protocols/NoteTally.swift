import PushModel
import Synchronization

/// How often an instance's role has noted each of some codes since the process began, for its statistics. It
/// outlives a reload.
final class NoteTally: Sendable {
    let began: ContinuousClock.Instant
    private let codes: [String]
    private let counts: Mutex<[Int]>

    /// - Parameter codes: a handful; others are not counted.
    init(of codes: [String], began: ContinuousClock.Instant) {
        self.began = began
        self.codes = codes
        counts = Mutex(Array(repeating: 0, count: codes.count))
    }

    func count(_ note: NoteCode) {
        guard let place = codes.firstIndex(of: note.text) else { return }
        counts.withLock { $0[place] += 1 }
    }

    /// All of them together.
    func callAsFunction(_ wanted: String...) -> Int {
        counts.withLock { counts in
            zip(codes, counts).reduce(0) { wanted.contains($1.0) ? $0 + $1.1 : $0 }
        }
    }
}
