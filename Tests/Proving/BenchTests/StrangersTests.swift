import Testing

@testable import Bench

@Suite("Ranks of two samples") struct StrangersTests {
    @Test("equal samples share evenly, and one above the other wins every pair")
    func ends() {
        #expect(StrangersBench.rank([1, 2, 3], [1, 2, 3]).share == 0.5)
        #expect(StrangersBench.rank([4, 5, 6], [1, 2, 3]).share == 1)
        #expect(StrangersBench.rank([1, 2, 3], [4, 5, 6]).share == 0)
    }

    @Test("the distance from one half is counted in its own standard errors")
    func errors() {
        // 3 × 3 pairs: the standard error of the share is √(7 / 108) = 0.2546.
        let far = StrangersBench.rank([4, 5, 6], [1, 2, 3]).errors
        #expect((1.96...1.97).contains(far))
        #expect(StrangersBench.rank([1, 2], [1, 2]).errors == 0)
    }
}
