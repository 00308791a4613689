@testable import HTTP2Client
import Testing

private final class Link: Sendable {}
private typealias State = PoolState<Link, Int>

private let start = ContinuousClock.now

private func options(_ change: (inout HTTP2Options) -> Void = { _ in }) -> HTTP2Options {
    var options = HTTP2Options()
    options.maximumConnections = 3
    change(&options)
    return options
}

private func report(
    limit: Int, submitted: Int = 0, closed: Int = 0, window: Int = 65_535, writable: Bool = true,
    doubted: Bool = false
)
    -> State.Report
{
    .init(
        limit: limit, submitted: submitted, closed: closed, windowRoomBytes: window, usualBodyBytes: 1000,
        writable: writable, isDoubted: doubted)
}

@Suite("The pool's decisions")
struct PoolStateTests {
    /// A running pool with connections 1… that stand, each with that many streams.
    private func standing(_ limits: [Int], _ change: (inout HTTP2Options) -> Void = { _ in }) -> State {
        var state = State(options: options(change))
        state.start()
        for (index, limit) in limits.enumerated() {
            if index > 0 { _ = state.wait(0, ahead: false, until: nil, now: start - .seconds(1)) }
            let plan = state.plan(now: start)
            _ = state.ready(plan.open[0], Link(), report(limit: 0), now: start)
            if index > 0 { _ = state.cancel(UInt64(index)) }
            _ = state.report(plan.open[0], report(limit: limit), now: start)
        }
        return state
    }

    /// How many of so many tries get a stream.
    private func taken(_ tries: Int, from state: inout State) -> Int {
        (0..<tries).reduce(0) { count, _ in state.take() == nil ? count : count + 1 }
    }

    @Test("Nothing is opened before the pool runs, then one connection")
    func first() {
        var state = State(options: options())
        #expect(state.plan(now: start).open.isEmpty)
        state.start()
        #expect(state.plan(now: start).open == [1])
        #expect(state.plan(now: start).open.isEmpty)
    }

    @Test("A pool rests with one trusted connection, whatever is under way, or until it may open the next")
    func rests() {
        let longest = options().restLook
        var state = State(options: options())
        state.start()
        #expect(state.rest(at: start) == nil, "a connection is to be opened")
        #expect(state.plan(now: start).open == [1])
        #expect(state.rest(at: start) == longest)
        state.ended(1, proved: false, now: start, random: .max)
        _ = state.plan(now: start)
        let wait = state.plan(now: start).lookAgain.map { $0 - start }
        #expect(wait != nil && state.rest(at: start) == wait.map { min($0, longest) })
        #expect(state.rest(at: start + .seconds(600)) == nil)
        state = standing([2])
        #expect(taken(2, from: &state) == 2)
        #expect(state.rest(at: start) == longest)
        let waiter = state.wait(7, ahead: false, until: nil, now: start)
        #expect(state.rest(at: start) == nil)
        #expect(state.cancel(waiter) == 7)
        #expect(state.rest(at: start) == longest)
        _ = state.report(1, report(limit: 2, doubted: true), now: start)
        #expect(state.rest(at: start) == nil, "a second one is to be opened")
        #expect(standing([2, 2]).rest(at: start) == nil, "the second one goes when it was idle for long")
    }

    @Test("Streams are taken up to the limit, and come back with a report")
    func limit() {
        var state = standing([2])
        #expect(taken(3, from: &state) == 2)
        #expect(state.wait(7, ahead: false, until: nil, now: start) > 0)
        let grants = state.report(1, report(limit: 2, submitted: 2, closed: 1), now: start)
        #expect(grants.map(\.waiter) == [7])
        #expect(state.inFlight == 2)
    }

    @Test("A limit lowered below what is in flight frees nothing until enough has ended")
    func lowered() {
        var state = standing([3])
        #expect(taken(3, from: &state) == 3)
        _ = state.wait(7, ahead: false, until: nil, now: start)
        #expect(state.report(1, report(limit: 1, submitted: 3, closed: 1), now: start).isEmpty)
        #expect(state.report(1, report(limit: 1, closed: 1), now: start).isEmpty)
        #expect(state.report(1, report(limit: 1, closed: 1), now: start).count == 1)
    }

    @Test("A spent window and a full socket count as full", arguments: [(999, true), (65_535, false)])
    func full(window: Int, writable: Bool) {
        var state = standing([100])
        _ = state.report(1, report(limit: 100, window: window, writable: writable), now: start)
        #expect(state.take() == nil)
    }

    @Test("What is promised but not written counts against the window")
    func promised() {
        var state = standing([100])
        _ = state.report(1, report(limit: 100, window: 3500), now: start)
        #expect(taken(4, from: &state) == 3)
    }

    @Test("Callers are served in order, a resend before all")
    func order() {
        var state = standing([0])
        _ = state.wait(1, ahead: false, until: nil, now: start)
        _ = state.wait(2, ahead: false, until: nil, now: start)
        _ = state.wait(3, ahead: true, until: nil, now: start)
        #expect(state.report(1, report(limit: 3), now: start).map(\.waiter) == [3, 1, 2])
    }

    @Test("Connections grow one by one while all are full, up to the bound")
    func growth() {
        var state = standing([0])
        _ = state.wait(1, ahead: false, until: nil, now: start)
        #expect(state.plan(now: start).open.isEmpty)
        #expect(state.plan(now: start).lookAgain == start + .milliseconds(25))
        let later = start + .milliseconds(25)
        #expect(state.plan(now: later).open == [2])
        #expect(state.plan(now: later + .seconds(1)).open.isEmpty)
        _ = state.ready(2, Link(), report(limit: 0), now: later)
        #expect(state.plan(now: later + .seconds(1)).open == [3])
        _ = state.ready(3, Link(), report(limit: 0), now: later)
        #expect(state.plan(now: later + .seconds(9)).open.isEmpty)
    }

    @Test("Connections without a good answer wait longer and longer, one good answer ends it")
    func backoff() {
        var state = State(options: options())
        state.start()
        var now = start
        for round in 0..<10 {
            let open = state.plan(now: now).open
            #expect(open.count == 1)
            state.ended(open.first ?? 0, proved: false, now: now, random: .max)
            #expect(state.plan(now: now).open.isEmpty)
            let wait = min(Duration.seconds(60), .seconds(1 << round))
            #expect(state.plan(now: now + wait * 0.99).open.isEmpty)
            now += wait
        }
        let open = state.plan(now: now).open
        state.proved()
        state.ended(open.first ?? 0, proved: true, now: now, random: .max)
        #expect(state.plan(now: now).open.count == 1)
    }

    @Test("A connection that is closed for being idle has not failed: the next is opened on demand, at once")
    func idle() {
        var state = standing([5])
        for round in 0..<10 {
            // It serves, and its peer closes it; or nobody has asked for it, and its peer closes it later.
            let now = start + .seconds(round * 100)
            let tag = round + 1
            if round % 2 == 0 { state.proved() }
            let ends = now + (round % 2 == 0 ? .seconds(1) : options().restAfter)
            state.ended(tag, proved: round % 2 == 0, idle: true, now: ends, random: .max)
            #expect(state.plan(now: ends + .seconds(50)).open.isEmpty, "nobody wants one")
            let waiter = state.wait(1, ahead: false, until: nil, now: ends + .seconds(50))
            #expect(state.plan(now: ends + .seconds(50)).open == [tag + 1], "round \(round)")
            _ = state.cancel(waiter)
            _ = state.ready(tag + 1, Link(), report(limit: 5), now: now + .seconds(100))
        }
    }

    @Test("Closed again and again right after it stood, idle or not, a connection waits longer and longer")
    func closedAtOnce() {
        var state = State(options: options())
        state.start()
        var now = start
        for round in 0..<8 {
            let open = state.plan(now: now).open
            #expect(open.count == 1)
            _ = state.ready(open.first ?? 0, Link(), report(limit: 5), now: now)
            now += .milliseconds(100)
            state.ended(open.first ?? 0, proved: false, idle: true, now: now, random: .max)
            _ = state.wait(1, ahead: false, until: nil, now: now)
            let wait = min(Duration.seconds(60), .seconds(1 << round))
            #expect(state.plan(now: now + wait * 0.99).open.isEmpty)
            now += wait
        }
    }

    @Test("A connection that took requests with it is followed at once if it had served, and fails if not")
    func lost() {
        for proved in [true, false] {
            var state = standing([5])
            state.ended(1, proved: proved, idle: false, now: start + .seconds(60), random: .max)
            #expect(state.plan(now: start + .seconds(60)).open.isEmpty == !proved)
        }
    }

    @Test("The wait is jittered over the whole span")
    func jitter() {
        var state = State(options: options())
        state.start()
        let open = state.plan(now: start).open
        state.ended(open[0], proved: false, now: start, random: 0)
        #expect(state.plan(now: start).open.count == 1)
    }

    @Test("A draining connection takes nothing and another is opened at once")
    func draining() {
        var state = standing([5])
        state.drain(1)
        #expect(state.take() == nil)
        #expect(state.plan(now: start).open == [2])
    }

    @Test("Idle connections go, but the last stays")
    func shrink() {
        var state = standing([5, 5])
        #expect(state.plan(now: start + .seconds(599)).retire.isEmpty)
        #expect(state.plan(now: start + .seconds(600)).retire.count == 1)
        #expect(state.plan(now: start + .seconds(9600)).retire.isEmpty)
    }

    @Test("Where the only connection is doubted a second is opened at once, and takes what comes")
    func doubted() {
        var state = standing([5])
        #expect(taken(1, from: &state) == 1)
        _ = state.report(1, report(limit: 5, submitted: 1, doubted: true), now: start)
        #expect(state.plan(now: start).open == [2])
        #expect(state.plan(now: start).open.isEmpty, "no third while it is on its way")
        _ = state.ready(2, Link(), report(limit: 5), now: start)
        for _ in 0..<5 { #expect(state.take()?.tag == 2) }
        #expect(state.take()?.tag == 1, "better than none")
        // The second is doubted as well: the next is for the one whose end makes room.
        _ = state.report(2, report(limit: 5, submitted: 5, doubted: true), now: start)
        #expect(state.plan(now: start + .seconds(9)).open.isEmpty)
        state.drain(2)
        #expect(state.plan(now: start + .seconds(9)).open == [3])
    }

    @Test("A second beside a doubted one is opened where but one may stand")
    func doubtedAlone() {
        var state = standing([5]) { $0.maximumConnections = 1 }
        _ = state.report(1, report(limit: 5, doubted: true), now: start)
        #expect(state.plan(now: start).open == [2])
    }

    @Test("A doubted connection goes once a better one stands and nothing is left on it")
    func doubtedGoes() {
        var state = standing([5, 5])
        #expect(taken(1, from: &state) == 1)
        _ = state.report(1, report(limit: 5, submitted: 1, doubted: true), now: start)
        #expect(state.plan(now: start).retire.isEmpty, "its request may be answered yet")
        _ = state.report(1, report(limit: 5, closed: 1, doubted: true), now: start)
        #expect(state.plan(now: start).retire.count == 1)
        // The one that is left stays, however long it is idle.
        #expect(state.plan(now: start + .seconds(9_600)).retire.isEmpty)
        #expect(state.take()?.tag == 2)
    }

    @Test("A caller with a moment is let go when it has passed")
    func expiry() {
        var state = standing([0])
        _ = state.wait(1, ahead: true, until: start + .seconds(1), now: start)
        #expect(state.plan(now: start).expire.isEmpty)
        #expect(state.plan(now: start + .seconds(1)).expire == [1])
        #expect(state.waitingCount == 0)
    }

    @Test("Stopping lets all callers go and opens nothing more")
    func stopping() {
        var state = standing([0])
        _ = state.wait(4, ahead: false, until: nil, now: start)
        #expect(state.stop().waiters == [4])
        state.ended(1, proved: true, now: start, random: 0)
        #expect(state.plan(now: start + .seconds(5)).open.isEmpty)
    }
}

@Suite("A connection's life")
struct ConnectionStateTests {
    private func ready(_ peer: Int? = 100, _ change: (inout HTTP2Options) -> Void = { _ in })
        -> ConnectionState
    {
        var state = ConnectionState(options: options(change), now: start)
        state.secured()
        _ = state.settings(peerLimit: peer)
        return state
    }

    private func tick(
        _ state: inout ConnectionState, _ seconds: Double, inFlight: Int = 0, stalled: Bool = false
    )
        -> ConnectionState.Action
    {
        state.tick(at: start + .milliseconds(Int(seconds * 1000)), inFlight: inFlight, stalled: stalled)
    }

    @Test("No stream is allowed before SETTINGS, and only the first makes it ready")
    func settings() {
        var state = ConnectionState(options: options(), now: start)
        #expect(state.limit == 0)
        state.secured()
        #expect(state.limit == 0)
        let first = state.settings(peerLimit: 1)
        #expect(first)
        #expect(state.limit == 1)
        let second = state.settings(peerLimit: 0)
        #expect(!second)
        #expect(state.limit == 0)
    }

    @Test("The peer's limit holds under our cap; without one, 100 until the first good answer")
    func limits() {
        #expect(ready(5000).limit == 1000)
        var state = ready(nil)
        #expect(state.limit == 100)
        let news = [state.good(), state.good()]
        #expect(news == [true, false])
        #expect(state.limit == 1000)
    }

    @Test("Without SETTINGS within the deadline it fails")
    func noSettings() {
        var state = ConnectionState(options: options(), now: start)
        #expect(tick(&state, 9.9) == .none)
        #expect(tick(&state, 10) == .fail(.noSettings))
    }

    @Test("After 15 s of silence a PING; 2 s later it takes no more, 10 s later it is over; a PONG saves it")
    func silence() {
        var state = ready()
        #expect(tick(&state, 14.9, inFlight: 1) == .none)
        #expect(tick(&state, 15, inFlight: 1) == .ping)
        #expect(tick(&state, 16.9, inFlight: 1) == .none)
        var dead = state
        #expect(tick(&dead, 17, inFlight: 1) == .drain)
        _ = dead.drain(at: start + .seconds(17))
        #expect(tick(&dead, 24.9, inFlight: 1) == .none)
        #expect(tick(&dead, 25, inFlight: 1) == .fail(.silent))
        state.read(at: start + .seconds(16))
        state.pong()
        #expect(tick(&state, 25, inFlight: 1) == .none)
        #expect(tick(&state, 31, inFlight: 1) == .ping)
    }

    @Test("An idle connection is asked once an hour")
    func idle() {
        var state = ready()
        #expect(tick(&state, 3599) == .none)
        #expect(tick(&state, 3600) == .ping)
    }

    @Test("The first request after a long silence takes a PING along")
    func wake() {
        var state = ready()
        #expect(state.submitted(at: start + .seconds(14)) == .none)
        #expect(state.submitted(at: start + .seconds(100)) == .ping)
        #expect(state.submitted(at: start + .seconds(101)) == .none)
        #expect(tick(&state, 110, inFlight: 1) == .fail(.silent))
    }

    @Test("A draining connection leaves when empty, and fails when it cannot even leave")
    func draining() {
        var state = ready()
        let news = [state.drain(at: start), state.drain(at: start)]
        #expect(news == [true, false])
        #expect(state.limit == 0)
        #expect(tick(&state, 1, inFlight: 1) == .none)
        #expect(tick(&state, 2) == .leave)
        // What was given up may be answered yet.
        #expect(tick(&state, 129.9, inFlight: 1) == .ping)
        state.pong()
        #expect(tick(&state, 130, inFlight: 1) == .fail(.silent))
    }

    @Test("Three expired requests without an answer between them drain it; one late answer starts anew")
    func expired() {
        var state = ready()
        #expect(!state.isDoubted)
        #expect(state.expired(listened: 1) == .none)
        #expect(state.isDoubted)
        #expect(state.expired(listened: 2) == .none)
        state.answered()
        #expect(!state.isDoubted)
        #expect(state.expired(listened: 2) == .none)
        #expect(state.expired(listened: 3) == .none)
        #expect(state.expired(listened: 4) == .drain)
    }

    @Test(
        "A connection whose streams are taken up by what was given up takes no more, and the others do",
        arguments: [(1, 1), (2, 2), (3, 2), (4, 3), (1000, 501)])
    func takenUp(limit: Int, drainsAt: Int) {
        for listened in 1...drainsAt {
            var state = ready(limit) { $0.expiredRequests = 10_000 }
            #expect(state.expired(listened: listened) == (listened == drainsAt ? .drain : .none))
        }
    }

    @Test("What must not be sent twice leaves within a second of a word of the peer, else behind a PONG")
    func proof() {
        var state = ready()
        state.read(at: start)
        #expect(state.proof(at: start + .milliseconds(999)) == .given)
        let late = start + .seconds(1)
        #expect(state.proof(at: late) == .ping)
        #expect(state.proof(at: late) == .awaited, "one PING for all of them")
        #expect(state.submitted(at: late) == .none, "nor does what may leave send another")
        #expect(tick(&state, 2.9, inFlight: 1) == .none)
        var silent = state
        #expect(tick(&silent, 3, inFlight: 1) == .drain)
        state.read(at: start + .seconds(2))
        state.pong()
        #expect(state.proof(at: start + .seconds(2.5)) == .given)
    }

    @Test("A window that stays spent with nothing in flight drains the connection")
    func stalled() {
        var state = ready()
        #expect(tick(&state, 1, stalled: true) == .none)
        #expect(tick(&state, 5, stalled: false) == .none)
        #expect(tick(&state, 6, stalled: true) == .none)
        #expect(tick(&state, 25.9, stalled: true) == .none)
        #expect(tick(&state, 26, stalled: true) == .drain)
    }

    @Test("Used-up stream ids drain it")
    func streamIDs() {
        var state = ready(100) { $0.requestsPerConnection = 2 }
        #expect(state.submitted(at: start) == .none)
        #expect(state.submitted(at: start) == .drain)
    }
}

@Suite("How long a pool waits for an answer")
struct PatienceTests {
    private func patience(_ base: Duration) -> PoolPatience {
        PoolPatience(options: options { $0.requestDeadline = base })
    }

    @Test("Nobody has answered late: the service's own deadline, and 20 s where it has none")
    func own() {
        #expect(patience(.seconds(30)).allowance(at: start).span == .seconds(30))
        #expect(PoolPatience(options: options()).allowance(at: start).span == .seconds(20))
    }

    @Test(
        "An answer gives the next one half as long again, a minute at most",
        arguments: [
            (Duration.seconds(5), Duration.seconds(20)), (.seconds(13), .seconds(20)),
            (.seconds(16), .seconds(24)), (.seconds(25), .milliseconds(37_500)),
            (.seconds(40), .seconds(60)), (.seconds(119), .seconds(60)), (.seconds(1 << 40), .seconds(60)),
            (.seconds(-5), .seconds(20))
        ])
    func learned(took: Duration, next: Duration) {
        var patience = patience(.seconds(20))
        patience.answered(after: took, at: start)
        #expect(patience.allowance(at: start).span == next)
    }

    @Test("Without another late answer it goes by half in five minutes, and a late one brings it back")
    func decays() {
        var patience = patience(.seconds(20))
        patience.answered(after: .seconds(40), at: start)
        for (minutes, span) in [(0, 60.0), (4.9, 60), (5, 40), (10, 30), (15, 25), (20, 22.5), (25, 21.25)] {
            let seconds = Duration.seconds(minutes * 60)
            #expect(patience.allowance(at: start + seconds).span == .seconds(span), "\(minutes) min")
        }
        // Less than a second is nothing.
        #expect(patience.allowance(at: start + .seconds(1_800)).span == .seconds(20))
        #expect(patience.allowance(at: start + .seconds(1 << 40)).span == .seconds(20))
        #expect(patience.allowance(at: start - .seconds(9)).span == .seconds(60))
        patience.answered(after: .seconds(22), at: start + .seconds(1_200))
        #expect(patience.allowance(at: start + .seconds(1_200)).span == .seconds(33))
        // A quicker one takes nothing back.
        patience.answered(after: .seconds(20), at: start + .seconds(1_200))
        #expect(patience.allowance(at: start + .seconds(1_200)).span == .seconds(33))
    }

    @Test("A deadline longer than a minute is kept, and an end is an end")
    func ends() {
        var patience = patience(.seconds(600))
        patience.answered(after: .seconds(500), at: start)
        #expect(patience.allowance(at: start).span == .seconds(600))
        #expect(patience.allowance(at: start).until == nil)
        patience.end(at: start + .seconds(12))
        patience.end(at: start + .seconds(20))
        #expect(patience.allowance(at: start).until == start + .seconds(12))
    }
}
