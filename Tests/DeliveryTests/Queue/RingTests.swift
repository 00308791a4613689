import Testing

@testable import Delivery

@Suite("The last so many of a sequence")
struct RingTests {
    @Test("The oldest goes for the one that comes, once all places are taken", arguments: 0...5)
    func goes(places: Int) {
        var ring = Ring<Int>(places)
        for number in 0..<13 {
            #expect(ring.append(number) == (number < places ? nil : number - places))
        }
    }
}
