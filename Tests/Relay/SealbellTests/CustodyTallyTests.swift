import Delivery
import PushModel
import Testing

@testable import RelayProgram

@Suite("Pushes that grew too old, as an operator hears of them")
struct CustodyTallyTests {
    @Test("They are told by lane, added up, and forgotten an hour after the last")
    func tally() throws {
        func lane(_ app: String) throws -> LaneName {
            LaneName(app: try #require(ConfiguredName(app)), service: .apns, environment: .production)
        }
        let (one, two) = (try lane("one"), try lane("two"))
        let tally = CustodyTally()
        let start = ContinuousClock.now
        func told(_ seconds: Int) -> [LaneName: Int] {
            Dictionary(
                uniqueKeysWithValues: tally.recent(within: .seconds(3_600), at: start + .seconds(seconds)))
        }
        tally.note(one, 0, at: start)
        #expect(told(0).isEmpty)
        tally.note(one, 2, at: start)
        tally.note(two, 1, at: start + .seconds(10))
        tally.note(one, 3, at: start + .seconds(3_000))
        #expect(told(3_000) == [one: 5, two: 1])
        #expect(told(3_610) == [one: 5])
        #expect(told(6_600).isEmpty)
        tally.note(one, 1, at: start + .seconds(6_601))
        #expect(told(6_601) == [one: 1], "counted anew")
    }
}
