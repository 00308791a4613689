package import CoreMetrics
package import PushModel
import ServiceLifecycle
import Synchronization

/// A way out for notices beside log and gauge: a webhook or a mail command.
package protocol AlertSink: Sendable {
    /// Tells one notice; bounded by a deadline of its own. False when it did not get through.
    func tell(_ notice: AlertNotice) async -> Bool
}

/// Which ways alerts go.
package struct AlertWays: Sendable {
    package var log = true
    package var gauge = true
    package var sinks: [any AlertSink] = []

    package init(log: Bool = true, gauge: Bool = true, sinks: [any AlertSink] = []) {
        self.log = log
        self.gauge = gauge
        self.sinks = sinks
    }
}

/// The one place through which an operator is told what they must know.
///
/// `raise` and `clear` may be called from anywhere at any rate: they take a short lock, write the log and set
/// the gauge `sealbell_alert`. Sinks are served by `run`, behind a bounded queue and a budget of notices an
/// hour; a sink that fails is tried three times.
package final class AlertPort: Service, Sendable {
    private struct State {
        var ways: AlertWays
        var book = AlertBook()
        var budget = AlertBudget()
        var queue: [AlertNotice] = []
        var waiter: CheckedContinuation<Void, Never>?
        var isStopped = false
    }

    /// Notices on their way to the sinks. Beyond, new ones are in log and gauge alone: anyone who has this
    /// many untold troubles does not need one more mail.
    private static let queued = 64
    private static let attempts = 3
    private static let pause = Duration.seconds(5)
    /// How often lasting troubles are looked at.
    private static let reminderGrain = Duration.seconds(60)

    private let journal: Journal
    private let world: World
    private let factory: any MetricsFactory
    private let state: Mutex<State>

    package init(ways: AlertWays, journal: Journal, metrics: any MetricsFactory, world: World) {
        state = Mutex(State(ways: ways))
        self.journal = journal
        self.world = world
        factory = metrics
    }

    /// Exchanges the ways, as a reload does; what holds already is not told anew.
    package func adopt(_ ways: AlertWays) { state.withLock { $0.ways = ways } }

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

    /// What holds now, for `/status` and for tests.
    package var raised: [Alert] { state.withLock { $0.book.raised } }

    package func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { timers in
                timers.addTask { await self.remindRegularly() }
                await self.serveSinks()
                timers.cancelAll()
            }
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
        let ways = state.withLock(\.ways)
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
            state.queue += fitting.prefix(max(0, Self.queued - state.queue.count))
            defer { state.waiter = nil }
            return (state.waiter, notices.count - fitting.count)
        }
        waiter?.resume()
        if dropped > 0 {
            Counter(label: "sealbell_alerts_untold_total", factory: factory).increment(by: dropped)
        }
    }

    /// What is said instead of the hour's last notice.
    private static func muted(_ notice: AlertNotice) -> AlertNotice {
        AlertNotice(
            .raised, Alert.Subject(kind: .muted, name: ""),
            "There are more alerts than may be sent in an hour: see the dashboard and the log for the rest.",
            at: notice.at)
    }

    private func log(_ notice: AlertNotice) {
        let kind = AlertWord(notice.subject.kind.rawValue)
        let name = AlertWord(notice.subject.name)
        switch notice.phase {
        case .raised: journal.note("alert raised", [.alert: kind, .note: name], level: .error)
        case .reminded: journal.note("alert still holds", [.alert: kind, .note: name], level: .warning)
        case .cleared: journal.note("alert cleared", [.alert: kind, .note: name])
        }
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
            for sink in state.withLock(\.ways.sinks) { await tell(notice, sink) }
        }
    }

    private func tell(_ notice: AlertNotice, _ sink: any AlertSink) async {
        for attempt in 1...Self.attempts {
            if await sink.tell(notice) { return }
            let isOver = state.withLock { $0.isStopped }
            guard attempt < Self.attempts, !isOver else { break }
            // A stop in the middle of a pause gives the notice up; it is in the log.
            do { try await world.sleep(world.instant() + Self.pause) } catch { break }
        }
        journal.note(
            "alert not delivered", [.alert: AlertWord(notice.subject.kind.rawValue)], level: .warning)
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

/// An alert's kind or subject: an enum's word, or a name that our own configuration gave.
private struct AlertWord: LogSafe {
    let logText: String
    init(_ text: String) { logText = text }
}
