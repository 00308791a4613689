import Synchronization

/// One seed of an origin: its users' phones, applications, a relay, and misfortune; then calm, and the
/// judgement. The origin is the real one, over the real delivery core and the real sealed store; phones and
/// relay are played.
package struct OriginSeedRun: Sendable {
    /// What is broken on purpose, to see that the law finds it.
    package struct Sabotage: OptionSet, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }
        /// Commits are answered before they are on stable storage.
        package static let syncOff = Sabotage(rawValue: 1)
        /// Answers of the relay to a tenth of the registrations are heard by nobody.
        package static let hearsNothing = Sabotage(rawValue: 2)
        /// Events are told twice.
        package static let tellsTwice = Sabotage(rawValue: 4)
        /// A notification counts as sent although the relay did not take it.
        package static let believesAll = Sabotage(rawValue: 8)

        package static let byName: [String: Sabotage] = [
            "sync-off": .syncOff, "hears-nothing": .hearsNothing, "tells-twice": .tellsTwice,
            "believes-all": .believesAll
        ]
    }

    /// What came of a seed.
    package struct Report: Sendable {
        package let seed: UInt64
        package let engine: SeedRun.EngineKind
        package let violations: [OriginViolation]
        package let chronicle: [String]
        /// Registrations and notifications that were answered.
        package let answered: (registrations: Int, notifications: Int)
        package let simulated: Duration
        package let jobs: Int
        /// Equal for equal runs.
        package let digest: UInt64
    }

    package let seed: UInt64
    package let engine: SeedRun.EngineKind?
    package let sabotage: Sabotage

    package init(seed: UInt64, engine: SeedRun.EngineKind? = nil, sabotage: Sabotage = []) {
        self.seed = seed
        self.engine = engine
        self.sabotage = sabotage
    }

    /// Runs the seed on the calling thread; where it breaks the law, once more, the same way, to tell what
    /// happened.
    package func run() -> Report {
        let report = runOnce(isTold: false)
        return report.violations.isEmpty ? report : runOnce(isTold: true)
    }

    private func runOnce(isTold: Bool) -> Report {
        let scheduler = Scheduler(seed: seed)
        let kind = engine ?? (scheduler.chance(12) ? .sqlite : .memory)
        let ledger = OriginLedger(scheduler, isTold: isTold)
        let calm = scheduler.machine()
        let isOver = Mutex(false)
        let stage = OriginStage(scheduler, ledger, kind, sabotage)
        calm.begin {
            await stage.play()
            isOver.withLock { $0 = true }
        }
        let end = scheduler.run { isOver.withLock(\.self) }
        if end != .over { ledger.broke(.stuck, "\(end)") }
        stage.clear()
        let trace = scheduler.trace
        return Report(
            seed: seed, engine: kind, violations: ledger.violations, chronicle: ledger.chronicle,
            answered: ledger.answered, simulated: scheduler.elapsed, jobs: trace.jobs, digest: trace.digest)
    }
}

/// What an origin did wrong.
package struct OriginViolation: Sendable, Hashable {
    package enum Law: String, Sendable, CaseIterable {
        /// Its client was answered, and long after all is well again it is neither there nor refused.
        case registrationLost = "a registration was lost"
        /// It is there after its client was told that it is not.
        case registrationStayed = "a registration that was forgotten is there"
        case pendingForEver = "a registration waits although all is well"
        case notRefused = "a registration that the relay refused has no reason"
        /// State and events, as a client puts them together.
        case mapDiffers = "a client that followed all events knows another state than the server"
        case eventTwice = "an event came twice"
        case notificationLost = "a notification that was answered reached no end at a device"
        case notDelivered = "a notification counts as accepted at a device that never got it"
        case leftOver = "an answered registration left something behind"
        case stuck = "the origin stood still"
    }

    package let law: Law
    package let detail: String
}

/// What was promised, and to whom.
final class OriginLedger: Sendable {
    private struct State {
        var violations: [OriginViolation] = []
        var chronicle: [String] = []
        var registrations = 0
        var number: UInt64 = 0
        /// Notifications that were answered.
        var notified: [(id: String, devices: Int)] = []
    }

    private let scheduler: Scheduler
    private let isTold: Bool
    private let state = Mutex(State())

    init(_ scheduler: Scheduler, isTold: Bool) {
        self.scheduler = scheduler
        self.isTold = isTold
    }

    var violations: [OriginViolation] { state.withLock(\.violations) }
    var chronicle: [String] { state.withLock(\.chronicle) }
    var answered: (registrations: Int, notifications: Int) {
        state.withLock { ($0.registrations, $0.notified.count) }
    }

    func happened(_ what: @autoclosure () -> String) {
        guard isTold else { return }
        let line = "\(scheduler.elapsed) \(what())"
        state.withLock { $0.chronicle.append(line) }
    }

    func broke(_ law: OriginViolation.Law, _ detail: String) {
        happened("BROKEN: \(law.rawValue): \(detail)")
        state.withLock { $0.violations.append(OriginViolation(law: law, detail: detail)) }
    }

    func registered() { state.withLock { $0.registrations += 1 } }
    /// With the devices that each is owed to.
    var notified: [(id: String, devices: Int)] { state.withLock(\.notified) }
    func notified(_ id: String, _ devices: Int) { state.withLock { $0.notified.append((id, devices)) } }
    /// For a notification, from 1.
    func nextNumber() -> UInt64 {
        state.withLock { state in
            state.number += 1
            return state.number
        }
    }
}
