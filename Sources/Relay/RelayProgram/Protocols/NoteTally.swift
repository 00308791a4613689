import PushModel
import Synchronization
import WireFormats

/// How often an instance's role has noted each of some codes since the process began, for its statistics. It
/// outlives a reload.
final class NoteTally: Sendable {
    private let began: ContinuousClock.Instant
    private let world: World
    private let codes: [String]
    private let counts: Mutex<[Int]>

    /// - Parameter codes: a handful; others are not counted.
    init(of codes: [String], _ world: World) {
        (self.world, began) = (world, world.instant())
        self.codes = codes
        counts = Mutex(Array(repeating: 0, count: codes.count))
    }

    /// Whole seconds since it began.
    var uptime: Int { Int((world.instant() - began).components.seconds) }

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

/// An instance whose counts an operator may read.
protocol CountingInstance: HostedInstance {
    var tally: NoteTally { get }
    /// Writes what it counts, behind its name and its uptime.
    func statistics(into json: inout JSONWriter)
}
