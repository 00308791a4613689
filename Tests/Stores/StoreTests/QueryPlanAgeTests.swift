import Testing

@testable import PostgresStore

@Suite("When a connection makes its plans anew")
struct QueryPlanAgeTests {
    private let start = ContinuousClock.now

    @Test("By count: after sixteen exchanges, then after four times as many as there were")
    func count() {
        var age = QueryPlanAge(now: start)
        let renewals = (1...1100).filter { _ in age.exchanged(at: start) }
        #expect(renewals == [16, 64, 256, 1024])
    }

    @Test("By the clock: every ten seconds, for as long as a connection lives")
    func clock() {
        var age = QueryPlanAge(now: start)
        var now = start
        // Twelve days of nothing but that; within minutes it once grew too large for an integer.
        for _ in 1...100_000 {
            now += .seconds(11)
            guard age.exchanged(at: now) else {
                Issue.record("not renewed after eleven seconds")
                return
            }
        }
        let early = age.exchanged(at: now + .seconds(9))
        let late = age.exchanged(at: now + .seconds(11))
        #expect(!early && late)
    }
}
