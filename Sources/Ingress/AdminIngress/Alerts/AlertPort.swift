package import CoreMetrics
package import PushModel
import ServiceLifecycle
import Synchronization

/// The one place through which an operator is told of alerts.
///
/// `raise` and `clear` may be called from anywhere at any rate: they take a short lock, write the log and set
/// the gauge `sealbell_alert`. Sinks are served by `run`, behind a bounded queue and a budget of notices an
/// hour; a sink that fails is tried three times.
///
/// What an operator has been told is stored until its end has been told, so that the next process tells that
/// end, or that it still holds (decision 0086).
package final class AlertPort: Service, Sendable {
    private struct State {
        var ways: AlertWays
        var book = AlertState()
        var budget = AlertBudget()
        var queue: [AlertNotice] = []
        var waiter: CheckedContinuation<Void, Never>?
        var isStopped = false
        /// What the shelf has not stored yet.
        var unkept: Set<Alert.Subject> = []
        /// Ends that wait for the sinks: until then they stay on the shelf.
        var ending: [Alert.Subject: Int] = [:]
    }

    /// Notices on their way to the sinks. Above that, new ones are only in log and gauge: an operator with
    /// this many untold troubles does not need one more mail.
    private static let queued = 64
    private static let attempts = 3
    private static let pause = Duration.seconds(5)
    /// How often lasting troubles are looked at.
    private static let reminderGrain = Duration.seconds(60)
    /// How often a shelf that refused something is tried again, and looked at for what other processes have
    /// left: as often as a lease is renewed.
    private static let shelfGrain = Duration.seconds(5)

    private let persistence: (any AlertPersistence)?
    private let shelfDue = Bell()
    private let journal: Journal
    private let world: World
    private let factory: any MetricsFactory
    /// There from the start: of a series that begins with its first count, Prometheus sees no increase.
    private let untold: Counter
    private let state: Mutex<State>

    package init(
        ways: AlertWays, journal: Journal, metrics: any MetricsFactory, world: World,
        persistence: (any AlertPersistence)? = nil
    ) {
        state = Mutex(State(ways: ways))
        self.persistence = persistence
        self.journal = journal
        self.world = world
        factory = metrics
        untold = Counter(label: "sealbell_alerts_untold_total", factory: metrics)
    }

    /// Replaces the sinks, as a reload does; troubles that already hold are not told again.
    package func adopt(_ ways: AlertWays) { state.withLock { $0.ways = ways } }

    /// Another configuration comes into force; called before its parts are.
    package func reloaded() { state.withLock { $0.book.reloaded() } }

    /// Takes over what earlier processes have told. Nothing is told about it before more is known.
    package func inherit() async {
        guard let standing = await persistence?.inherit(), !standing.isEmpty else { return }
        state.withLock { state in
            state.book.inherit(standing)
            // Troubles that this process has met are written as it knows them.
            state.unkept.formUnion(standing.map(\.subject))
        }
        for alert in standing where raised.contains(where: { $0.subject == alert.subject }) {
            gauge(alert.subject, 1)
        }
        shelfDue.ring()
    }

    package func raise(_ alert: Alert) {
        gauge(alert.subject, 1)
        let now = world.now()
        take(state.withLock { $0.book.raise(alert, at: now) }.map { [$0] } ?? [])
    }

    package func clear(_ subject: Alert.Subject) {
        gauge(subject, 0)
        let now = world.now()
        take(state.withLock { $0.book.clear(subject, at: now) }.map { [$0] } ?? [])
    }

    /// What holds now.
    package var raised: [StandingAlert] { state.withLock { $0.book.raised } }

    package func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { timers in
                timers.addTask { await self.remindRegularly() }
                timers.addTask { await self.keepRegularly() }
                timers.addTask { await self.inheritRegularly() }
                await self.serveSinks()
                timers.cancelAll()
            }
            // The notices of the last moment.
            _ = await self.keepWhatIsDue()
        } onCancelOrGracefulShutdown: {
            let waiter = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.isStopped = true
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }
    }

    // MARK: Log, gauge, queue

    private func gauge(_ subject: Alert.Subject, _ level: Int) {
        guard state.withLock({ $0.ways.gauge }) else { return }
        Gauge(
            label: "sealbell_alert",
            dimensions: [("alert", subject.kind.rawValue), ("subject", subject.name)],
            factory: factory
        ).record(level)
    }

    private func take(_ notices: [AlertNotice]) {
        guard !notices.isEmpty else { return }
        let ways = state.withLock { state in
            state.unkept.formUnion(notices.map(\.subject))
            return state.ways
        }
        defer { shelfDue.ring() }
        if ways.log { for notice in notices { log(notice) } }
        guard !ways.sinks.isEmpty else { return }
        let (waiter, dropped) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Int) in
            let fitting = notices.compactMap { notice -> AlertNotice? in
                guard state.queue.count < Self.queued else { return nil }
                switch state.budget.take(at: notice.at) {
                case .tell: return notice
                case .tellMuted: return Self.muted(notice)
                case .drop: return nil
                }
            }
            let taken = fitting.prefix(max(0, Self.queued - state.queue.count))
            state.queue += taken
            for notice in taken where notice.phase == .cleared {
                state.ending[notice.subject, default: 0] += 1
            }
            defer { state.waiter = nil }
            return (state.waiter, notices.count - fitting.count)
        }
        waiter?.resume()
        if dropped > 0 { untold.increment(by: dropped) }
    }

    /// The notice that replaces the hour's last one.
    private static func muted(_ notice: AlertNotice) -> AlertNotice {
        AlertNotice(
            .raised, Alert.Subject(kind: .muted, name: ""),
            "There are more alerts than may be sent in an hour: see the dashboard and the log for the rest.",
            at: notice.at)
    }

    private func log(_ notice: AlertNotice) {
        let fields = Self.fields(notice) + [(LogKey.sentence, AlertWord(notice.sentence))]
        switch notice.phase {
        case .raised: journal.note("alert raised", fields, level: .error)
        case .reminded: journal.note("alert still holds", fields, level: .warning)
        case .cleared: journal.note("alert cleared", fields)
        }
    }

    /// What it is about, and the word that caused it.
    private static func fields(_ notice: AlertNotice) -> [(LogKey, any LogSafe)] {
        [
            (.alert, AlertWord(notice.subject.kind.rawValue)), (.note, AlertWord(notice.subject.name))
        ] + (notice.cause.map { [(.cause, AlertWord($0))] } ?? [])
    }

    // MARK: Sinks

    private func remindRegularly() async {
        while true {
            // The sleep ends early only by cancellation, which ends the reminders.
            do { try await world.sleep(world.instant() + Self.reminderGrain) } catch { return }
            let now = world.now()
            take(state.withLock { $0.book.due(at: now) })
        }
    }

    private func serveSinks() async {
        while let notice = await next() {
            var isOver = true
            for sink in state.withLock(\.ways.sinks) where await !tell(notice, sink) { isOver = false }
            if notice.phase == .cleared, isOver { told(endOf: notice.subject) }
        }
    }

    private func told(endOf subject: Alert.Subject) {
        state.withLock { state in
            let left = (state.ending[subject] ?? 0) - 1
            state.ending[subject] = left > 0 ? left : nil
            state.unkept.insert(subject)
        }
        shelfDue.ring()
    }

    /// - Returns: false when this process stops before it could try often enough: an end is left to the next
    ///   one, all else is in the log.
    private func tell(_ notice: AlertNotice, _ sink: any AlertSink) async -> Bool {
        var attempts = 0
        while true {
            let outcome = await sink.tell(notice)
            attempts += 1
            if outcome == .told { return true }
            let isStopped = state.withLock(\.isStopped)
            if isStopped || attempts == Self.attempts { note(notice, undelivered: outcome, sink) }
            if attempts == Self.attempts { return true }
            guard !isStopped else { return false }
            do { try await world.sleep(world.instant() + Self.pause) } catch { return false }
        }
    }

    private func note(_ notice: AlertNotice, undelivered outcome: AlertDelivery, _ sink: any AlertSink) {
        let why: [(LogKey, any LogSafe)] =
            switch outcome {
            case .told: []
            case .refused(let status): [(.code, ErrorCode("refused")), (.status, status)]
            case .failed(let code): [(.code, code)]
            }
        journal.note(
            "alert not delivered", Self.fields(notice) + [(.way, sink.way)] + why, level: .warning)
    }

    /// The next notice; `nil` when the port stops. What still waits then is in the log.
    private func next() async -> AlertNotice? {
        while true {
            let (notice, isStopped) = state.withLock { state in
                (state.isStopped || state.queue.isEmpty ? nil : state.queue.removeFirst(), state.isStopped)
            }
            if isStopped { return nil }
            if let notice { return notice }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state -> Bool in
                    if state.isStopped || !state.queue.isEmpty { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }
}

// MARK: The shelf

extension AlertPort {
    /// Writes down what was told, until cancelled.
    private func keepRegularly() async {
        while !Task.isCancelled {
            if await keepWhatIsDue() {
                await shelfDue.wait()
            } else {
                do { try await world.sleep(world.instant() + Self.shelfGrain) } catch { return }
            }
        }
    }

    private func inheritRegularly() async {
        while persistence != nil {
            // The sleep ends early only by cancellation, which ends the looks.
            do { try await world.sleep(world.instant() + Self.shelfGrain) } catch { return }
            await inherit()
        }
    }

    /// - Returns: false when the shelf did not take it.
    private func keepWhatIsDue() async -> Bool {
        guard let persistence else { return true }
        let (due, standing, over) = state.withLock { state in
            let due = state.unkept
            state.unkept = []
            let over = due.filter { state.book.known($0) == nil && state.ending[$0] == nil }
            return (due, due.compactMap { state.book.known($0) }, Array(over))
        }
        guard !due.isEmpty else { return true }
        if await persistence.keep(standing, dropping: over) { return true }
        state.withLock { $0.unkept.formUnion(due) }
        return false
    }
}

/// An alert's kind, subject, cause or sentence: words of ours, and names that our own configuration gave.
private struct AlertWord: LogSafe {
    let logText: String
    init(_ text: String) { logText = text }
}
