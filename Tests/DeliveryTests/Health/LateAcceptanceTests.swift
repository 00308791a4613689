import Delivery
import PushModel
import Testing

@Suite("Who was lately accepted")
struct LateAcceptanceTests {
    private let start = ContinuousClock.now
    private func origin(_ number: Int) -> Digest16 { Digest16(high: 1, low: UInt64(number)) }
    private func late() -> LateAcceptances { LateAcceptances(span: .seconds(3_600)) }

    @Test("The last accepted is first, each once, and no more than sixteen with eight addresses are known")
    func known() {
        var late = late()
        for number in 0..<100 {
            for address in 0..<20 { late.note(origin(number % 20), 100 * number + address, at: start) }
        }
        let known = late.lately(start)
        #expect(known.map(\.origin) == (4..<20).reversed().map(origin))
        #expect(known.allSatisfy { $0.addresses.count == 8 })
        // The last of each, none of another's.
        #expect(Set(known.first?.addresses ?? []) == Set((9_912..<9_920)))
        late.note(origin(5), 1, at: start)
        #expect(late.lately(start).first?.origin == origin(5))
        #expect(late.lately(start).count == 16)
    }

    @Test("An acceptance is forgotten after the span, and an origin whose probe failed at once")
    func ends() {
        var late = late()
        late.note(origin(1), 1, at: start)
        late.note(origin(2), 1, at: start + .seconds(60))
        #expect(late.lately(start + .seconds(3_599)).count == 2)
        #expect(late.lately(start + .seconds(3_600)).map(\.origin) == [origin(2)])
        late.forget(origin(2))
        #expect(late.lately(start + .seconds(61)).map(\.origin) == [origin(1)])
    }

    @Test("Of those accepted lately as many must be among others as there are, and no more than are wanted")
    func among() {
        var late = late()
        func isEnough(_ numbers: [Int], after span: Duration = .zero) -> Bool {
            late.areAmong(Set(numbers.map(origin)), atMost: 3, at: start + span)
        }
        #expect(isEnough([7, 8, 9]), "nobody was accepted")
        late.note(origin(1), 1, at: start)
        #expect(!isEnough([7, 8, 9]) && isEnough([1, 8, 9]))
        late.note(origin(2), 1, at: start)
        #expect(!isEnough([1, 8, 9]) && isEnough([1, 2, 9]))
        for number in 3..<100 { late.note(origin(number), 1, at: start) }
        // Also those of which no address is known any more.
        #expect(!isEnough([1, 2, 1_000]) && isEnough([1, 2, 3]))
        #expect(isEnough([1_000], after: .seconds(3_600)))
        late.note(origin(1), 1, at: start + .seconds(3_600))
        #expect(!isEnough([1_000], after: .seconds(3_601)) && isEnough([1], after: .seconds(3_601)))
    }

    @Test("However many origins are accepted, and however they repeat, what is known is bounded")
    func bounded() {
        var late = late()
        for number in 0..<20_000 { late.note(origin(number), number, at: start + .milliseconds(number)) }
        #expect(late.lately(start + .seconds(20)).count == 16)
        let others = Set((0..<3).map(origin))
        #expect(late.areAmong(others, atMost: 3, at: start + .seconds(20)))
    }
}
