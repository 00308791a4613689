import Testing

@testable import AdminIngress

@Suite("A count and its noun")
struct CountedTests {
    @Test("One has the noun of one, and none that of several")
    func nouns() {
        #expect([0, 1, 2].map { counted($0, "day") } == ["0 days", "1 day", "2 days"])
        #expect([0, 1, 2].map { counted($0, "push", "pushes") } == ["0 pushes", "1 push", "2 pushes"])
        #expect(counted(Int64(1), "push is", "pushes are") + " owed" == "1 push is owed")
    }

    @Test("Alerts of one are told of one")
    func alerts() {
        #expect(Alert.pushesSetAside(1).sentence.hasPrefix("1 owed push does not open and is not sent"))
        #expect(Alert.pushesSetAside(2).sentence.hasPrefix("2 owed pushes do not open and are not sent"))
        #expect(Alert.recordsSetAside(1).sentence.hasPrefix("1 record cannot be read and counts as none"))
        #expect(Alert.pushOverdue(minutes: 1).sentence.contains("for 1 minute:"))
    }
}
