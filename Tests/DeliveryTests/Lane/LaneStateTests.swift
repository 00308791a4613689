import PushModel
import PushTesting
import Testing

@testable import Delivery

@Suite("What a lane decides")
struct LaneStateTests {
    /// A push that stands in memory only.
    private func volatile(_ number: Int, _ message: ProviderMessage) -> LaneQueue.Entry {
        let push = VolatilePush(
            message: message, pushClass: .normal, custodyEnds: UnixTime(seconds: 1_800_000_600))
        return entry(
            OwedPush(
                volatile: push, id: PushID(Digest16(high: 0, low: UInt64(number))), lane: sampleLane,
                origin: Digest16(high: 0, low: 1), notBefore: UnixTime(seconds: 1_800_000_000),
                instance: Names.instance))
    }

    private func pigeon(_ number: Int) -> LaneQueue.Entry {
        volatile(
            number,
            ProviderMessage(
                PigeonMessage(
                    loft: Secret("coast/\(number)".utf8), note: Secret("n".utf8), coast: "coast.example:443"))
        )
    }

    private func plain(_ number: Int) -> LaneQueue.Entry {
        volatile(
            number,
            .fcm(
                FCMMessage(
                    address: Secret("t\(number)".utf8), priority: .high, data: Secret("{}".utf8))))
    }

    private func owed(_ number: Int, origin: UInt64 = 1) -> LaneQueue.Entry {
        entry(samplePush(number, origin: origin, custodyEnds: UnixTime(seconds: 1_801_000_000)))
    }

    @Test(
        "What a full shelf has no room for is dropped and counted, with a lease and without",
        arguments: [true, false])
    func fullShelf(_ isLeased: Bool) {
        var limits = DeliveryLimits()
        (limits.lanePushes, limits.volatilePushes, limits.destinationWindow) = (5, 1, 1)
        var stage = LaneStage(limits)
        stage.admit((1...5).map(pigeon))
        let sent = stage.next(isLeased: isLeased)
        #expect(sent.entry != nil)
        // One is under way, and no more may be: of the others one finds room on the shelf.
        let held = stage.next(isLeased: isLeased)
        #expect(held.entry == nil)
        #expect(held.actions.volatileEnded == 1 && held.actions.volatileDropped == 1)
    }

    @Test("What a retry that comes back drives from memory, and from a full shelf, is dropped and counted")
    func drivenOut() throws {
        var limits = DeliveryLimits()
        (limits.lanePushes, limits.volatilePushes) = (2, 1)
        var stage = LaneStage(limits)
        stage.admit([owed(1, origin: 2)])
        let first = try stage.sent()
        let others = stage.admit([plain(2), plain(3), plain(4)])
        #expect(others.volatileDropped == 0 && stage.lane.inMemory == 3)
        // Nothing of its origin is in memory: the fullest yields, and the shelf is full.
        let actions = stage.answer(.busy(), first)
        #expect(actions.volatileEnded == 1 && actions.volatileDropped == 1)
        #expect(stage.lane.inMemory == 3)
        #expect(actions.settle.count == 1, "and its own row is told of the retry")
    }

    @Test("A halt for targets ends with an answer whose push comes back of an origin that nobody knew")
    func reopened() throws {
        var stage = LaneStage(changing(DeliveryLimits()) { $0.breakerAddresses = 2 })
        stage.admit([owed(1, origin: 2)])
        let first = try stage.sent()
        stage.admit([owed(2), owed(3)])
        for change in [Breaker.Change.none, .halted(.targets)] {
            let sent = try stage.sent()
            let actions = stage.answer(.badDeviceToken, sent)
            #expect(actions.breaker == change)
        }
        let actions = stage.answer(.silence, first)
        #expect(actions.breaker == .reopened)
        #expect(!stage.lane.snapshot(of: sampleLane, []).isHalted)
    }

    @Test("Beside others that are accepted all the time a push is sent less and less often")
    func rests() throws {
        var stage = LaneStage()
        stage.admit([owed(1)])
        var sent: [Int] = []
        var left: Settler.Item?
        for tick in 0..<6_000 where left == nil {
            stage.pass(.milliseconds(100))
            _ = stage.lane.tick(at: stage.moment, seconds: 0.1, isLeased: true)
            // One of the others has its answer.
            stage.answer(.accepted, owed(2))
            guard let taken = stage.next().entry else { continue }
            sent.append(tick)
            let actions = stage.answer(.badCredential, taken, random: .max)
            if stage.lane.inMemory == 0 { left = actions.settle.first }
        }
        // After a second, two, four; what waits for longer does so in the store.
        let spans = zip(sent, sent.dropFirst()).map { $1 - $0 }
        #expect(spans == [10, 20, 40])
        #expect(!stage.lane.snapshot(of: sampleLane, []).isHalted)
        guard case .retry(let notBefore, let attempt, _, parked: true)? = left?.settlement.step else {
            Issue.record("it went nowhere")
            return
        }
        #expect(attempt == 4 && notBefore == stage.now + .milliseconds(7_999))
    }

    @Test("A lease that ran out gives back what is durable, and one that was renewed what came before it")
    func lease() {
        var stage = LaneStage()
        stage.admit([owed(1), plain(2), owed(3)])
        let without = stage.next(isLeased: false)
        #expect(without.entry?.push.custody == .volatile && without.actions.ranOut == 2)
        stage.admit([owed(4)])
        let renewed = stage.lane.next(at: stage.moment, term: 1)
        #expect(renewed.entry == nil && renewed.actions.settle.count == 1 && renewed.actions.ranOut == 0)
    }

    @Test("A lane that stops keeps what is volatile for as long as it may, and takes nothing more in")
    func stops() {
        var stage = LaneStage()
        stage.admit([owed(1), plain(2), plain(3)])
        let until = stage.instant + .seconds(10)
        let stopped = stage.lane.stop(drainUntil: until, now: stage.now)
        #expect(stopped.settle.count == 1 && stage.lane.isStopping)
        let late = stage.admit([owed(4)])
        #expect(late.settle.count == 1)
        let sent = stage.next()
        #expect(sent.entry?.push.custody == .volatile && !stage.lane.isDrained(stage.instant))
        stage.pass(.seconds(10))
        let none = stage.next()
        #expect(none.entry == nil && stage.lane.isDrained(stage.instant))
        let end = stage.lane.finish()
        #expect(end.volatileDropped == 1)
    }
}

@Suite("Rows that wait in the store")
struct ParkedRowsTests {
    private let now = UnixTime(seconds: 1_800_000_000)

    /// A lane's rows, told to the letter.
    private struct Rows {
        var rows = ParkedRows(limits: DeliveryLimits(), longestWait: .seconds(900))

        mutating func asks(_ held: Int, _ now: UnixTime) -> Bool {
            rows.ask(for: Self.room(held), isHalted: false, now: now)
        }

        mutating func begin(_ held: Int, _ now: UnixTime) throws -> LaneClaim {
            let claim = rows.begin(Self.room(held), now: now)
            return try #require(claim)
        }

        private static func room(_ held: Int) -> ParkedRows.Room {
            ParkedRows.Room(limit: 100, count: held, urgent: 0, normal: 0, all: held)
        }
    }

    @Test("Nothing is asked for where nothing waits, where memory is full, or twice")
    func asks() throws {
        var lane = Rows()
        let empty = lane.asks(0, now)
        lane.rows.note(.normal, due: now)
        let full = lane.asks(51, now)
        let half = lane.asks(50, now)
        let again = lane.asks(0, now)
        #expect(!empty && !full && half && !again)
        let claim = try lane.begin(50, now)
        #expect(claim.room == 50 && claim.classes == .urgent ... .background)
    }

    @Test("Rows are claimed before their time as often as there were rows, and then at their time again")
    func hurried() throws {
        var lane = Rows()
        for _ in 0..<80 { lane.rows.note(.normal, due: now + .seconds(600)) }
        // The store says when the next is due.
        let first = lane.asks(0, now)
        var claim = try lane.begin(40, now)
        _ = claim.bring([])
        _ = claim.wait(until: now + .seconds(600))
        lane.rows.end(claim)
        let early = lane.asks(0, now)
        #expect(first && !early)
        lane.rows.hurry()
        let asks = lane.asks(0, now)
        claim = try lane.begin(40, now)
        #expect(asks && claim.isHurried && claim.begun == now + .seconds(900) && claim.room == 60)
        let sixty = (0..<60).map { samplePush($0) }
        _ = claim.bring(sixty)
        lane.rows.end(claim)
        // All sixty come back at once.
        for _ in 0..<60 { lane.rows.note(.normal, due: now + .seconds(600)) }
        let again = lane.asks(0, now)
        claim = try lane.begin(40, now)
        #expect(again && claim.isHurried)
        _ = claim.bring(sixty)
        lane.rows.end(claim)
        let last = lane.asks(0, now)
        claim = try lane.begin(40, now)
        #expect(last && !claim.isHurried && claim.begun == now)
    }

    @Test("Once a tick a memory full of what may wait is asked ahead for what may not")
    func ahead() throws {
        var lane = Rows()
        lane.rows.note(.urgent, due: now)
        let before = lane.asks(100, now)
        lane.rows.tick()
        let after = lane.asks(100, now)
        #expect(!before && after)
        let claim = try lane.begin(100, now)
        #expect(claim.classes == .urgent ... .normal)
    }

    @Test("A claim that brings all it had room for is followed by another, one that brings less waits")
    func ends() throws {
        var lane = Rows()
        lane.rows.correct(60)
        _ = lane.asks(0, now)
        var full = try lane.begin(60, now)
        let goesOn = full.bring((1...40).map { samplePush($0) })
        lane.rows.end(full)
        #expect(!goesOn && lane.rows.count == 20)
        let second = now + .seconds(1)
        let asksAgain = lane.asks(0, second)
        var last = try lane.begin(0, second)
        let asksWhen = last.bring([])
        let late = last.wait(until: second + .seconds(30))
        lane.rows.end(last)
        #expect(asksAgain && asksWhen && late == nil)
        let (early, due) = (lane.asks(0, second + .seconds(29)), lane.asks(0, second + .seconds(30)))
        #expect(!early && due)
        var none = try lane.begin(0, second + .seconds(30))
        _ = none.bring([])
        _ = none.wait(until: nil)
        lane.rows.end(none)
        #expect(none.isLast && lane.rows.count == 0 && !lane.rows.mayAsk)
    }

    @Test("What was put off and is another's by now hides nothing of our own, and is forgotten")
    func putOffElsewhere() throws {
        var lane = Rows()
        for _ in 0..<5 { lane.rows.putOff(.normal, due: now + .seconds(600)) }
        // Another process has taken the five; three of our own stand there now.
        lane.rows.note(.normal, due: now, count: 3)
        lane.rows.correct(3)
        let asks = lane.asks(0, now)
        var claim = try lane.begin(0, now)
        _ = claim.bring((1...3).map { samplePush($0) })
        _ = claim.wait(until: nil)
        lane.rows.end(claim)
        #expect(asks && !lane.rows.mayAsk, "the store has none that were put off")
        lane.rows.correct(4)
        #expect(lane.rows.count == 4 && lane.rows.mayAsk, "nor are these taken for them")
    }

    @Test("What was parked twice while the store counted is counted once")
    func parkedTwice() throws {
        var lane = Rows()
        let before = lane.rows.noted
        for _ in 0..<2 {
            lane.rows.note(.normal, due: now, count: 5)
            lane.rows.tick()
            _ = lane.asks(0, now)
            var claim = try lane.begin(0, now)
            _ = claim.bring((1...5).map { samplePush($0) })
            _ = claim.wait(until: nil)
            lane.rows.end(claim)
        }
        lane.rows.note(.normal, due: now, count: 5)
        lane.rows.correct(0, notedBefore: before)
        #expect(lane.rows.count == 5)
    }

    @Test("What is put off is asked for when the store says that it is due, and is no backlog until then")
    func putOff() throws {
        var lane = Rows()
        for seconds in [60, 600] { lane.rows.putOff(.normal, due: now + .seconds(seconds)) }
        lane.rows.correct(2)
        let first = lane.asks(0, now)
        var claim = try lane.begin(0, now)
        lane.rows.putOff(.normal, due: now + .seconds(700))
        _ = claim.bring([])
        _ = claim.wait(until: now + .seconds(60))
        lane.rows.end(claim)
        let (early, due) = (lane.asks(0, now + .seconds(59)), lane.asks(0, now + .seconds(60)))
        #expect(first && !early && due && lane.rows.count == 0)
        var last = try lane.begin(0, now + .seconds(60))
        lane.rows.putOff(.urgent, due: now + .seconds(90))
        _ = last.bring([])
        _ = last.wait(until: nil)
        lane.rows.end(last)
        #expect(lane.rows.mayAsk, "one came while the store was asked")
        lane.rows.wake(now: now + .seconds(90))
        #expect(lane.rows.count == 1)
    }

    @Test("Rows that a dead process left are asked for at once, however many of ours are missed")
    func gained() throws {
        var lane = Rows()
        for _ in 0..<3 { lane.rows.putOff(.normal, due: now + .seconds(600)) }
        _ = lane.asks(0, now)
        var claim = try lane.begin(0, now)
        _ = claim.bring([])
        _ = claim.wait(until: now + .seconds(600))
        lane.rows.end(claim)
        lane.rows.correct(3)
        let before = lane.asks(0, now + .seconds(1))
        lane.rows.correct(3, hasGained: true)
        let after = lane.asks(0, now + .seconds(1))
        #expect(!before && after)
    }

    @Test("What a clock put off that has been set back since is claimed at once")
    func setBack() throws {
        var lane = Rows()
        lane.rows.note(.normal, due: now)
        _ = lane.asks(0, now)
        var claim = try lane.begin(0, now)
        _ = claim.bring([samplePush(1)])
        let late = claim.wait(until: now + .seconds(7_200))
        #expect(late?.due == now + .seconds(7_200) && late?.limit == claim.room - 1)
        claim.bringLate([samplePush(2)])
        #expect(claim.pushes.count == 2 && claim.next == now)
    }
}
