@testable import AdminIngress
import PushModel
import PushTesting
import Synchronization
import Testing

/// A shelf in memory, which a test may break.
private final class NotedPersistence: AlertPersistence {
    let written = Noted<[Alert.Subject: StandingAlert]>([:])
    let left: Noted<[StandingAlert]>
    let isBroken = Noted(false)

    init(left: [StandingAlert] = []) { self.left = Noted(left) }

    func inherit() async -> [StandingAlert] {
        left.change { left in
            defer { left = [] }
            return left
        }
    }

    func keep(_ standing: [StandingAlert], dropping: [Alert.Subject]) async -> Bool {
        guard !isBroken.value else { return false }
        written.change { written in
            for alert in standing { written[alert.subject] = alert }
            for subject in dropping { written[subject] = nil }
        }
        return true
    }
}

/// A sink that takes notices only while a test lets it.
private final class SlowSink: AlertSink {
    let way = NoteCode("test")
    let told = Noted<[AlertNotice]>([])
    let outcome = Noted(AlertDelivery.told)

    func tell(_ notice: AlertNotice) async -> AlertDelivery {
        guard outcome.value == .told else { return outcome.value }
        told.change { $0.append(notice) }
        return .told
    }
}

@Suite("Alerts over reloads and restarts", .timeLimit(.minutes(30)))
struct AlertPersistenceTests {
    private let halted = Alert.laneHalted(probeLane, .invalidProviderToken)
    private let filling = Alert.outboxFilling(percent: 85)

    private func at(_ seconds: Int64) -> UnixTime { UnixTime(seconds: 1_000_000 + seconds) }

    @Test("What the process before has told is told once more when it is met, and its end when that is known")
    func inherited() {
        var book = AlertState()
        book.inherit([StandingAlert(halted, toldAt: at(0)), StandingAlert(filling, toldAt: at(0))])
        #expect(Set(book.raised.map(\.subject)) == [halted.subject, filling.subject])
        #expect(book.due(at: at(10)) == [], "to inherit is to know nothing new")
        #expect(book.raise(halted, at: at(11))?.phase == .reminded)
        #expect(book.raise(halted, at: at(12)) == nil)
        let over = book.clear(filling.subject, at: at(13))
        #expect(over?.phase == .cleared && over?.sentence == "This is over: \(filling.sentence)")
        #expect(book.clear(filling.subject, at: at(14)) == nil)
        #expect(book.clear(halted.subject, at: at(15))?.phase == .cleared)
    }

    @Test("What nobody meets again is still told of each hour, for nobody knows that it is over")
    func unmet() {
        var book = AlertState()
        book.inherit([StandingAlert(halted, toldAt: at(0))])
        #expect(book.due(at: at(3_599)) == [])
        #expect(book.due(at: at(3_600)).map(\.phase) == [.reminded])
    }

    @Test("What this process has met itself is not told anew for the sake of one that is gone")
    func met() {
        var book = AlertState()
        #expect(book.raise(halted, at: at(5))?.phase == .raised)
        book.inherit([StandingAlert(halted, toldAt: at(0))])
        #expect(book.raise(halted, at: at(6)) == nil)
        #expect(book.raised == [StandingAlert(halted, toldAt: at(5))])
    }

    @Test("A reload ends no alert; a halt behind it is told at once, and so is what was over before it")
    func reloaded() {
        var book = AlertState()
        _ = book.raise(halted, at: at(0))
        _ = book.raise(filling, at: at(0))
        _ = book.clear(filling.subject, at: at(1))
        book.reloaded()
        #expect(book.raised.map(\.subject) == [halted.subject])
        #expect(book.raise(filling, at: at(2))?.phase == .raised, "not held back as one that flaps")
        #expect(book.raise(halted, at: at(3))?.phase == .raised, "a new halt")
        #expect(book.raise(halted, at: at(4)) == nil)
        // What flaps without a reload is held back as before.
        _ = book.clear(halted.subject, at: at(5))
        #expect(book.raise(halted, at: at(6)) == nil)
    }

    /// Runs a port for as long as `body` takes, and stops it in order.
    private func run(
        _ clock: ManualClock, _ persistence: NotedPersistence, _ sinks: [any AlertSink],
        _ body: (AlertPort) async throws -> Void
    ) async throws {
        let port = AlertPort(
            ways: AlertWays(sinks: sinks), journal: .silent, metrics: PrometheusMetrics(),
            world: clock.world(seed: 1), persistence: persistence)
        await port.inherit()
        try await beside(port.run) { try await body(port) }
    }

    @Test("The shelf holds what was told until its end was told")
    func persistence() async throws {
        let (clock, persistence, sink) = (ManualClock(), NotedPersistence(), SlowSink())
        try await run(clock, persistence, [sink]) { port in
            port.raise(halted)
            await persistence.written.until { $0[halted.subject] != nil }
            sink.outcome.set(.failed(ErrorCode("unreachable")))
            port.clear(halted.subject)
            // Its reminder, the look for what others have left, and the pause behind the failed attempt.
            await clock.sleepers(atLeast: 3)
            #expect(persistence.written.value.count == 1, "nobody has heard the end")
            sink.outcome.set(.told)
            clock.advance(by: .seconds(5))
            await persistence.written.until { $0.isEmpty }
            #expect(sink.told.value.map(\.phase) == [.raised, .cleared])
        }
    }

    @Test("An end that a stop leaves untold is told by the next process, exactly once")
    func untoldEnd() async throws {
        let (clock, persistence, sink) = (ManualClock(), NotedPersistence(), SlowSink())
        try await run(clock, persistence, [sink]) { port in
            port.raise(halted)
            await persistence.written.until { $0[halted.subject] != nil }
            sink.outcome.set(.failed(ErrorCode("unreachable")))
            port.clear(halted.subject)
            await clock.sleepers(atLeast: 3)
        }
        #expect(persistence.written.value.count == 1)
        sink.outcome.set(.told)
        let next = NotedPersistence(left: Array(persistence.written.value.values))
        try await run(clock, next, [sink]) { port in
            #expect(port.raised.map(\.isInherited) == [true])
            await next.written.until { $0.count == 1 }
            port.clear(halted.subject)
            await next.written.until { $0.isEmpty }
            port.clear(halted.subject)
        }
        #expect(sink.told.value.map(\.phase) == [.raised, .cleared])
    }

    @Test("A shelf that takes nothing is asked again, and what was told in the last moment is written")
    func broken() async throws {
        let (clock, persistence) = (ManualClock(), NotedPersistence())
        persistence.isBroken.set(true)
        try await run(clock, persistence, []) { port in
            port.raise(filling)
            await clock.sleepers(atLeast: 3)
            persistence.isBroken.set(false)
            clock.advance(by: .seconds(5))
            await persistence.written.until { $0.count == 1 }
            persistence.isBroken.set(true)
            port.raise(halted)
            await clock.sleepers(atLeast: 3)
            persistence.isBroken.set(false)
        }
        #expect(Set(persistence.written.value.keys) == [filling.subject, halted.subject])
    }

    @Test("What a process leaves that dies later is taken over too")
    func later() async throws {
        let (clock, persistence) = (ManualClock(), NotedPersistence())
        try await run(clock, persistence, []) { port in
            await clock.sleepers(atLeast: 2)
            persistence.left.set([StandingAlert(halted, toldAt: clock.now)])
            clock.advance(by: .seconds(5))
            await persistence.written.until { $0[halted.subject] != nil }
            #expect(port.raised.map(\.subject) == [halted.subject])
        }
    }
}
