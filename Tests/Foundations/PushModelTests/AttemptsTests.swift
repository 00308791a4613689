import PushModel
import Testing

@Suite("A row's number of attempts")
struct AttemptsTests {
    @Test("A number without doubts is the number of attempts: stores of before read as they were written")
    func plain() {
        for made in [0, 1, 7, 65_535] {
            let attempts = Attempts(stored: made)
            #expect(attempts.made == made && attempts.unknown == 0 && attempts.unreadable == 0)
            #expect(attempts.stored == made)
        }
    }

    @Test("Each kind is counted by itself, and all outlive the row")
    func counted() {
        let attempts = Attempts(stored: 0).andOne().andOneUnknown().andOneUnreadable().andOneUnknown()
        #expect(attempts.made == 4 && attempts.unknown == 2 && attempts.unreadable == 1)
        #expect(Attempts(stored: attempts.stored) == attempts)
    }

    @Test("Nothing runs over into its neighbour, or out of four signed bytes")
    func saturates() {
        var attempts = Attempts(stored: 0)
        for _ in 0..<70_000 { attempts = attempts.andOne() }
        #expect(attempts.made == 65_535 && attempts.unknown == 0 && attempts.unreadable == 0)
        for _ in 0..<300 { attempts = attempts.andOneUnknown() }
        #expect(attempts.made == 65_535 && attempts.unknown == 127 && attempts.unreadable == 0)
        for _ in 0..<300 { attempts = attempts.andOneUnreadable() }
        #expect(attempts.unknown == 127 && attempts.unreadable == 127)
        #expect(Int32(exactly: attempts.stored) != nil)
        #expect(Attempts(stored: attempts.stored) == attempts)
        #expect(RowBounds.attempts.contains(Int64(attempts.stored)), "no store sets such a row aside")
    }

    @Test(
        "Whatever a row holds is read without a fault", arguments: [-1, Int.min, Int.max, 1 << 30, -65_536])
    func odd(_ stored: Int) {
        let attempts = Attempts(stored: stored)
        #expect(Int32(exactly: attempts.andOneUnknown().stored) != nil)
        #expect(stored >= 0 || attempts.stored == 0)
    }
}
