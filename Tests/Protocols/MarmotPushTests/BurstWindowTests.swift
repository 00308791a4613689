@testable import MarmotPush
import PushModel
import PushTesting
import Testing

@Suite("Bursts of messages")
struct BurstWindowTests {
    @Test("Messages within one to two seconds wake once; the first one sets the end")
    func merges() {
        let window = Bursts(seed: 1)
        let start = ContinuousClock.now
        var ends: Set<Duration> = []
        for group in UInt8(0)..<20 {
            #expect(!window.sent(in: [group], at: start))
            let end = window.nextDeadline.map { $0 - start } ?? .zero
            #expect(end >= .seconds(1) && end <= .seconds(2))
            ends.insert(end)
            for step in 1...9 {
                #expect(!window.sent(in: [group], at: start + .milliseconds(100 * step)))
            }
            #expect(window.nextDeadline.map { $0 - start } == end, "later messages do not put it off")
            #expect(window.due(at: start + .milliseconds(999)).isEmpty)
            #expect(window.due(at: start + .seconds(2)) == [[group]])
            #expect(window.due(at: start + .seconds(9)).isEmpty && window.nextDeadline == nil)
        }
        #expect(ends.count > 10)
    }

    @Test("Groups are collected apart, and one that was left wakes nobody")
    func apart() {
        let window = Bursts(seed: 2)
        let start = ContinuousClock.now
        for group in UInt8(0)..<4 { _ = window.sent(in: [group], at: start) }
        window.forget([2])
        #expect(Set(window.due(at: start + .seconds(2))) == [[0], [1], [3]])
    }

    @Test("When too many groups are collected, a further one is notified at once")
    func full() {
        let window = Bursts(seed: 3)
        let start = ContinuousClock.now
        for group in 0..<MarmotLimits.openBursts {
            #expect(!window.sent(in: [UInt8(group >> 8), UInt8(group & 255)], at: start))
        }
        #expect(window.sent(in: [9, 9, 9], at: start))
        #expect(!window.sent(in: [0, 0], at: start), "one that is open stays open")
        #expect(window.due(at: start + .seconds(2)).count == MarmotLimits.openBursts)
    }
}
