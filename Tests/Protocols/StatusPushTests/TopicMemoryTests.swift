import PushModel
import StatusPush
import Testing

@Suite("Keys of topics that a Status relay has in memory")
struct TopicMemoryTests {
    fileprivate static let own: UInt32 = 1
    fileprivate static let key = Secret([UInt8](repeating: 7, count: StatusLimits.keyBytes))

    /// One memory, and what it says to each thing that it is told.
    private final class Told {
        var memory: TopicMemory
        private let start = ContinuousClock.now

        init(mostKeys: Int = 100) {
            memory = TopicMemory(own: [TopicMemoryTests.own], mostKeys: mostKeys, keptFor: .seconds(60))
        }

        func took(
            _ count: Int, of topic: UInt32, askedAfter revision: UInt64 = 0, at second: Int = 0
        ) -> Bool {
            let keys = [Secret](repeating: TopicMemoryTests.key, count: count)
            return memory.took(keys, of: topic, askedAfter: revision, at: start + .seconds(second))
        }

        func keys(of topic: UInt32, at second: Int = 0) -> Int? {
            memory.keys(of: topic, at: start + .seconds(second))?.count
        }

        func forget(at second: Int) { memory.forget(at: start + .seconds(second)) }

        func read(_ ids: [UInt32], upTo revision: UInt64?, isEnd: Bool) -> Bool {
            memory.read(ids, upTo: revision, isEnd: isEnd)
        }
    }

    @Test("They are kept for as long as they may, and let go of then")
    func kept() {
        let told = Told()
        #expect(told.keys(of: 5) == nil)
        #expect(told.took(1, of: 5))
        #expect(told.keys(of: 5, at: 59) == 1)
        #expect(told.keys(of: 5, at: 60) == nil)
        told.forget(at: 59)
        #expect(told.memory.held == 1)
        told.forget(at: 60)
        #expect(told.memory.held == 0 && told.memory.reads == 1)
    }

    @Test("A topic that nobody is left at is followed no longer, unless it is the server's own")
    func nobody() {
        let told = Told()
        #expect(!told.took(0, of: 5))
        #expect(told.took(0, of: Self.own))
        #expect(told.keys(of: Self.own) == 0 && told.memory.held == 1)
    }

    @Test("What was asked before a row was read says nothing after it")
    func overtaken() {
        let told = Told()
        #expect(told.took(1, of: 5))
        #expect(told.read([5], upTo: 3, isEnd: true))
        #expect(told.memory.held == 0)
        // Neither is the topic followed for nobody, nor are its keys of before kept.
        #expect(told.took(0, of: 5))
        #expect(told.took(1, of: 5))
        #expect(told.memory.held == 0 && told.memory.reads == 3)
        #expect(told.took(1, of: 5, askedAfter: 3))
        #expect(told.memory.held == 1)
    }

    @Test("Where there is no room the older half goes, and keys count, not topics")
    func room() {
        let told = Told(mostKeys: 6)
        for topic in 2...5 { #expect(told.took(1, of: UInt32(topic), at: topic)) }
        #expect(told.took(2, of: 6, at: 6))
        #expect(told.memory.held == 5)
        #expect(told.took(1, of: 7, at: 7))
        #expect((2...7).filter { told.keys(of: $0, at: 7) != nil } == [5, 6, 7])
    }

    @Test("Listening begins once, with the first page that is the last")
    func beginning() {
        let told = Told()
        #expect(!told.read([2], upTo: 10, isEnd: false))
        #expect(told.memory.last == 10)
        #expect(told.read([], upTo: nil, isEnd: true))
        #expect(told.memory.last == 10)
        #expect(!told.read([3], upTo: 12, isEnd: true))
        #expect(told.memory.last == 12)
    }

    @Test("The sweep begins anew behind the last page")
    func sweeps() {
        let told = Told()
        told.memory.swept(upTo: 10, isEnd: false)
        #expect(told.memory.swept == 10)
        told.memory.swept(upTo: 12, isEnd: true)
        #expect(told.memory.swept == 0)
    }
}
