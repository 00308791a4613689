import PushModel
import Testing

@testable import PostgresStore

@Suite("When PostgreSQL's tables are written anew")
struct PostgresForgettingQueryTests {
    private typealias Deletions = OwedCounts.Deletions
    private let limits = PostgresLimits()
    private let start = ContinuousClock.now

    private func at(_ seconds: Int64) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("First in any case, then when deletions have come to rest, for records only if theirs have changed")
    func quiet() {
        var plan = ForgettingSchedule(now: start, limits: limits)
        let none = Deletions()
        #expect(plan.due(none, now: at(10), limits: limits) == nil, "not known to be quiet")
        #expect(plan.due(none, now: at(20), limits: limits) == .everything)
        plan.tried(.all, deletions: none, began: at(20), now: at(20), limits: limits)
        #expect(plan.due(none, now: at(500), limits: limits) == nil, "nothing was deleted")
        let some = Deletions(pushes: 3, records: 0)
        #expect(plan.due(some, now: at(510), limits: limits) == nil)
        #expect(plan.due(some, now: at(520), limits: limits) == .pushes)
        plan.tried(.tables, deletions: some, began: at(520), now: at(522), limits: limits)
        let more = Deletions(pushes: 3, records: 1)
        for second in [530, 540, 700] as [Int64] {
            #expect(plan.due(more, now: at(second), limits: limits) == nil, "a hundred times two seconds")
        }
        #expect(plan.due(more, now: at(722), limits: limits) == .everything)
    }

    @Test("Under unbroken load after ten minutes, and less and less often while somebody is in the way")
    func load() {
        var plan = ForgettingSchedule(now: start, limits: limits)
        for count in 0..<59 {
            let now = Deletions(pushes: count, records: 0)
            #expect(plan.due(now, now: at(Int64(count) * 10), limits: limits) == nil)
        }
        let last = Deletions(pushes: 99, records: 0)
        #expect(plan.due(last, now: at(600), limits: limits) == .everything)
        plan.tried(.busy, deletions: last, began: at(600), now: at(600), limits: limits)
        #expect(plan.due(last, now: at(610), limits: limits) == nil)
        #expect(plan.due(last, now: at(620), limits: limits) == .everything, "twice ten seconds")
        plan.tried(nil, deletions: last, began: at(620), now: at(620), limits: limits)
        #expect(plan.due(last, now: at(650), limits: limits) == nil)
        #expect(plan.due(last, now: at(660), limits: limits) == .everything)
    }
}
