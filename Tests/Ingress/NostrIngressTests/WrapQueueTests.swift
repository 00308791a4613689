import MarmotPush
import NostrIngress
import PushModel
import Secp256k1Keys
import Testing

@Suite("The queue of wraps", .timeLimit(.minutes(30)))
struct WrapQueueTests {
    private let author: XOnlyKey

    init() throws {
        author = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 0, count: 31) + [7])).publicKey
    }

    private func item(_ relay: Int, _ number: Int = 0, bytes: Int = 10) -> WrapQueue.Item {
        let event = NostrEvent.rumor(
            kind: NostrKind.giftWrap, createdAt: Int64(number),
            content: Secret([UInt8](repeating: 0x61, count: bytes)), author: author)
        return WrapQueue.Item(event: event, source: .live, relay: relay)
    }

    @Test("Relays take turns, so a flood delays another's event by one of its own")
    func turns() async {
        let queue = WrapQueue(share: 1 << 20)
        for number in 0..<50 { #expect(await queue.put(item(1, number))) }
        #expect(await queue.put(item(2, 99)))
        #expect(await queue.put(item(3, 98)))
        var relays: [Int] = []
        for _ in 0..<5 { if let item = await queue.take() { relays.append(item.relay) } }
        #expect(relays == [1, 2, 3, 1, 1])
        #expect(queue.count == 47)
    }

    @Test("One relay's events come in their order")
    func order() async {
        let queue = WrapQueue(share: 1 << 20)
        for number in 0..<150 { #expect(await queue.put(item(1, number))) }
        for number in 0..<150 { #expect(await queue.take()?.event.createdAt == Int64(number)) }
    }

    @Test("Who finds the own share full waits, and another relay does not")
    func full() async {
        // Of three such events the third does not fit.
        let queue = WrapQueue(share: 3_000)
        #expect(await queue.put(item(1, 1, bytes: 900)))
        #expect(await queue.put(item(1, 2, bytes: 900)))
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await queue.put(item(1, 3, bytes: 900)) }
            #expect(await queue.put(item(2, 4, bytes: 900)))
            #expect(await queue.take()?.event.createdAt == 1)
            #expect(await group.next() == true)
        }
        #expect(queue.count == 3)
    }

    @Test("Small events fill a share too, and a larger share lets the next one in")
    func share() async {
        let queue = WrapQueue(share: 100 * 600)
        for number in 1...100 { #expect(await queue.put(item(1, number, bytes: 1))) }
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for number in 101...150 where !(await queue.put(item(1, number, bytes: 1))) { return false }
                return true
            }
            queue.setShare(1 << 20)
            #expect(await group.next() == true)
        }
        #expect(queue.count == 150)
    }

    @Test("An event above the byte bound passes when it is alone")
    func large() async {
        let queue = WrapQueue(share: 100)
        #expect(await queue.put(item(1, 1, bytes: 1_000)))
        #expect(await queue.take()?.event.content.count == 1_000)
    }

    @Test("A closed queue refuses, wakes who waits, and hands out what it has")
    func close() async {
        let queue = WrapQueue(share: 1)
        #expect(await queue.put(item(1, 1)))
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await queue.put(item(1, 2)) }
            queue.close()
            #expect(await group.next() == false)
        }
        #expect(await !queue.put(item(2, 3)))
        #expect(await queue.take()?.event.createdAt == 1)
        #expect(await queue.take() == nil)
    }

    @Test("A cancelled reader stops waiting for room")
    func cancelled() async {
        let queue = WrapQueue(share: 1)
        #expect(await queue.put(item(1, 1)))
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await queue.put(item(1, 2)) }
            group.cancelAll()
            #expect(await group.next() == false)
        }
        #expect(queue.count == 1)
    }

    @Test("Workers that wait are woken, each by an event of its own")
    func takers() async {
        let queue = WrapQueue(share: 1 << 20)
        await withTaskGroup(of: Int64?.self) { group in
            for _ in 0..<4 { group.addTask { await queue.take()?.event.createdAt } }
            for number in 1...4 { #expect(await queue.put(item(number, number))) }
            var found: Set<Int64> = []
            for await number in group { if let number { found.insert(number) } }
            #expect(found == [1, 2, 3, 4])
        }
    }
}
