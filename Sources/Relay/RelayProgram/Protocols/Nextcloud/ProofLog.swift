import NextcloudPush
import PushModel
import Synchronization

/// Says in the log why instances prove nothing: each cause once a minute, because strangers choose whom the
/// relay asks.
final class ProofLog: Sendable {
    private static let pause = Duration.seconds(60)
    private let instance: ConfiguredName
    private let journal: Journal
    private let world: World
    /// As many as there are causes.
    private let said = Mutex<[ProofFault: ContinuousClock.Instant]>([:])

    init(of instance: ConfiguredName, _ journal: Journal, _ world: World) {
        self.instance = instance
        self.journal = journal
        self.world = world
    }

    @Sendable func note(_ fault: ProofFault) {
        let now = world.instant()
        let isNew = said.withLock { said in
            if let last = said[fault], now - last < Self.pause { return false }
            said[fault] = now
            return true
        }
        guard isNew else { return }
        journal.note("identity not proven", [.instance: instance, .cause: fault], level: .warning)
    }
}
