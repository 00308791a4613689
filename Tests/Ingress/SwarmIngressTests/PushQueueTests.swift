import PushModel
import PushTesting
import SessionPush
import SwarmIngress
import Testing

@Suite("The queue of pushes", .timeLimit(.minutes(30)))
struct PushQueueTests {
    private func item(_ node: Int, bytes: Int = 100) -> PushQueue.Item {
        PushQueue.Item(
            node: LinkRig.node(node).key, scope: SwarmScope(nil),
            body: Secret([UInt8](repeating: 0, count: bytes)))
    }

    @Test("Nodes have their turn one after the other, however much one of them has brought")
    func turns() async throws {
        let queue = PushQueue(share: 1 << 20) { _ in }
        for _ in 0..<100 { queue.put(item(1)) }
        queue.put(item(2))
        queue.put(item(3))
        var nodes: Set<NodeKey> = []
        for _ in 0..<3 { nodes.insert(try #require(await queue.take()).node) }
        #expect(nodes.count == 3)
        #expect(queue.count == 99)
    }

    @Test("A node whose share is full is told when it has room again; the others go on meanwhile")
    func share() async throws {
        let told = Watch()
        let queue = PushQueue(share: 1_000) { _ in told.add() }
        let (first, second) = (LinkRig.node(1).key, LinkRig.node(2).key)
        while queue.takes(from: first) { queue.put(item(1)) }
        #expect(queue.count == 3 && queue.takes(from: second))
        #expect(told.count == 0)
        while queue.count > 0 { _ = await queue.take() }
        await told.wait(for: 1)
        #expect(told.count == 1 && queue.takes(from: first))
    }

    @Test("A queue that is closed hands out what it has, and ends")
    func closed() async {
        let queue = PushQueue(share: 1_000) { _ in }
        queue.put(item(1))
        queue.close()
        queue.put(item(1))
        #expect(await queue.take() != nil)
        #expect(await queue.take() == nil)
    }
}
