import PushModel
import PushTesting
import Testing

@Suite("The wall clock with a second witness", .timeLimit(.minutes(30)))
struct DoubtedClockTests {
    private static let day = Duration.seconds(86_400)
    private let clock = ManualClock()

    private func doubted(off span: Duration = .zero) -> DoubtedClock {
        DoubtedClock(clock.world(seed: 1), last: clock.now - span)
    }

    @Test("It is believed while it goes on, and over a night off")
    func believed() {
        let doubted = doubted(off: .seconds(5 * 3_600))
        for _ in 0..<1_000 {
            #expect(!doubted.now.isDoubted && doubted.now.judged == clock.now)
            clock.advance(by: .seconds(3_600))
        }
    }

    @Test(
        "Set ahead by a day or a year, before the start or after it, it is not, until it comes back",
        arguments: [Duration.seconds(7 * 3_600), day, .seconds(400 * 86_400)], [true, false])
    func jumps(_ span: Duration, _ beforeStart: Bool) {
        if beforeStart { clock.skewWall(by: span) }
        let doubted = doubted(off: beforeStart ? span : .zero)
        if !beforeStart { clock.skewWall(by: span) }
        let start = clock.now - span
        clock.advance(by: .seconds(60))
        let reading = doubted.now
        #expect(reading.isDoubted && reading.judged == start + .seconds(60) && reading.ahead == span)
        #expect(reading.wall == clock.now)
        #expect(reading.end(of: start) == reading.judged, "stamped before")
        // The last time of a store is a minute old when its relay ends, and the relay was off for a while.
        #expect(reading.end(of: reading.judged + .seconds(300)) == reading.judged, "stamped just before")
        #expect(reading.end(of: reading.wall) == reading.wall, "stamped by the clock in doubt")
        let other = reading.wall - max(.seconds(72 * 3_600), span / 4)
        #expect(reading.end(of: other) == reading.judged, "by neither, or long ago")
        let old = reading.judged + .seconds(3_600)
        #expect(reading.end(of: reading.wall, lasting: old) == reading.judged, "its end is of another clock")
        #expect(reading.end(of: reading.wall, lasting: reading.wall + .seconds(1)) == reading.wall)
        clock.skewWall(by: .zero - span)
        #expect(doubted.now == .init(wall: clock.now, judged: clock.now, isDoubted: false))
    }

    @Test("Small steps are forgiven one after the other, but not a day of them in an hour")
    func steps() {
        let doubted = doubted()
        for _ in 0..<100 {
            clock.skewWall(by: .seconds(60))
            clock.advance(by: .seconds(3_600))
            #expect(!doubted.now.isDoubted)
        }
        var steps = 0
        while !doubted.now.isDoubted, steps < 24 {
            clock.skewWall(by: .seconds(3_600))
            clock.advance(by: .seconds(60))
            steps += 1
        }
        #expect((6...7).contains(steps))
    }

    @Test("Looks that follow one another within a millisecond spend nothing of what is forgiven")
    func manyLooks() {
        // Neither of the two clocks ticks with the other.
        clock.advance(by: .microseconds(370))
        let doubted = doubted()
        for _ in 0..<100_000 {
            clock.advance(by: .microseconds(130))
            #expect(!doubted.now.isDoubted)
        }
        clock.skewWall(by: DoubtedClock.tolerance - .seconds(3))
        #expect(!doubted.now.isDoubted)
    }

    @Test("Set back, it ends nothing early, and the way forth again is no leap")
    func back() {
        let doubted = doubted()
        let latest = clock.now + .seconds(60)
        clock.skewWall(by: .zero - Self.day * 3_000)
        clock.advance(by: .seconds(60))
        #expect(
            doubted.now == .init(wall: clock.now, judged: clock.now, isDoubted: false, latest: latest))
        clock.skewWall(by: Self.day * 3_000)
        #expect(doubted.now == .init(wall: clock.now, judged: clock.now, isDoubted: false))
    }

    @Test("A suspended machine's clock is believed: the other one counts on too")
    func suspended() {
        let doubted = doubted()
        clock.suspend(for: Self.day * 30)
        #expect(!doubted.now.isDoubted)
    }

    @Test("An operator's word counts here, in the store, and with others on it; unless the store is out")
    func word() async throws {
        let store = Kept()
        let last = clock.now
        clock.skewWall(by: Self.day)
        let clocks = (0..<2).map { _ in
            DoubtedClock(clock.world(seed: 1), last: last) { step throws(StoreError) in
                try store.step(step)
            }
        }
        #expect(clocks.allSatisfy { $0.now.isDoubted })
        for doubted in clocks { try await doubted.keep() }
        #expect(store.value.value == last)
        store.isOut.change { $0 = true }
        await #expect(throws: StoreError(.unavailable)) { try await clocks[0].trust() }
        #expect(clocks[0].now.isDoubted)
        store.isOut.change { $0 = false }
        let before = try await clocks[0].trust()
        #expect(before.isDoubted && before.ahead == Self.day)
        #expect(!clocks[0].now.isDoubted && store.value.value == clock.now)
        try await clocks[1].keep()
        #expect(!clocks[1].now.isDoubted)
    }
}

private final class Kept: Sendable {
    let value = Noted<UnixTime?>(nil)
    let isOut = Noted(false)

    func step(_ step: LastTime) throws(StoreError) -> UnixTime? {
        if isOut.value { throw StoreError(.unavailable) }
        value.change { standing in
            switch step {
            case .look: break
            case .raise(let time): standing = max(standing ?? time, time)
            case .set(let time): standing = time
            }
        }
        return value.value
    }
}
