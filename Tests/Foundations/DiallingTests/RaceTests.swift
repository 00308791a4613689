import Dialling
import Testing

/// When attempts begin, told by a clock of the test's own.
@Suite("The race between a name's addresses")
struct RaceTests {
    private let begin = ContinuousClock.now
    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { begin + .milliseconds(milliseconds) }

    private func race(_ count: Int, within span: Duration = .seconds(60)) -> DialRace {
        DialRace(count: count, limits: DialLimits(), within: span, at: begin)
    }

    /// Milliseconds from the beginning to the next start.
    private func next(_ race: DialRace) -> Int? {
        race.nextStart.map { Int(($0 - begin) / .milliseconds(1)) }
    }

    @Test("Who has no connection yet has a quarter of a second alone")
    func delay() {
        var race = race(3)
        #expect(race.start(at: at(0)) == 0)
        #expect(race.start(at: at(249)) == nil && next(race) == 250)
        #expect(race.start(at: at(250)) == 1)
        #expect(race.start(at: at(499)) == nil)
        #expect(race.start(at: at(500)) == 2)
        #expect(race.start(at: at(10_000)) == nil && next(race) == nil)
        #expect(!race.isLost && !race.hasTaken)
    }

    @Test("A failure makes the next begin at once, and all is lost with the last alone")
    func failure() {
        var race = race(3)
        #expect(race.start(at: at(0)) == 0)
        race.fail(0)
        #expect(race.start(at: at(1)) == 1)
        #expect(race.start(at: at(2)) == nil && !race.isLost)
        race.fail(1)
        #expect(race.start(at: at(3)) == 2)
        #expect(!race.isLost)
        race.fail(2)
        #expect(race.isLost && next(race) == nil)
    }

    @Test("Who has taken a connection and is silent has two seconds alone, and loses nothing by it")
    func silence() {
        var race = race(3)
        #expect(race.start(at: at(0)) == 0)
        race.take(0, at: at(100))
        #expect(race.hasTaken && next(race) == 2_100)
        #expect(race.start(at: at(2_100)) == 1)
        // The second has no connection, so it is waited for as briefly as ever.
        #expect(next(race) == 2_350)
        race.take(1, at: at(2_200))
        #expect(next(race) == 4_200)
        // A failure beside it does not hurry what the silent one is given.
        race.fail(0)
        #expect(next(race) == 4_200)
        race.fail(1)
        #expect(race.start(at: at(2_201)) == 2)
    }

    @Test("Who has been heard holds the field until it fails")
    func heard() {
        var race = race(2)
        #expect(race.start(at: at(0)) == 0)
        race.take(0, at: at(10))
        race.hear(0)
        #expect(next(race) == nil && race.start(at: at(50_000)) == nil)
        race.fail(0)
        race.hear(0)
        #expect(race.start(at: at(50_000)) == 1)
    }

    @Test("Every address has its turn within the time for all", arguments: 1...8)
    func share(_ count: Int) {
        var race = race(count, within: .seconds(3))
        var moment = begin
        for number in 0..<count {
            guard race.start(at: moment) == number else {
                Issue.record("number \(number) had no turn")
                return
            }
            race.take(number, at: moment)
            moment = race.nextStart ?? moment
        }
        #expect(moment < at(3_000))
    }
}
