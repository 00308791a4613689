import Dispatch
import Glibc
import NextcloudPush
import PushModel
import PushTesting
import Synchronization
import Testing
import WireFormats

/// Where batches are judged: a loop has sockets to serve.
@Suite("Nextcloud batches away from the loop", .timeLimit(.minutes(30)))
struct OffLoopTests {
    /// Runs tasks one after the other, as an event loop does, and knows which thread it is on.
    private final class Loop: TaskExecutor {
        private let queue = DispatchQueue(label: "loop")
        private let thread = Mutex<pthread_t?>(nil)

        var isHere: Bool { thread.withLock { $0 == pthread_self() } }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async {
                self.thread.withLock { $0 = pthread_self() }
                job.runSynchronously(on: self.asUnownedTaskExecutor())
                self.thread.withLock { $0 = nil }
            }
        }
    }

    private final class Spy: ForwardingRegistry {
        let registry: any Registry
        let wasOnLoop = Noted<[Bool]>([])
        private let loop: Loop

        init(_ registry: any Registry, _ loop: Loop) {
            self.registry = registry
            self.loop = loop
        }

        func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
            wasOnLoop.change { $0.append(loop.isHere) }
            return try await registry.find(keys)
        }
    }

    @Test(
        "A small batch is judged where it came, a large one elsewhere, and its answer is back at home",
        arguments: [2, 200])
    func place(_ count: Int) async throws {
        let rig = try await NextcloudRelayRig.make()
        let loop = Loop()
        let spy = Spy(rig.store, loop)
        let judged = Noted<[Bool]>([])
        let relay = try NextcloudRelay(
            instance: NextcloudRelayRig.instance, apps: NextcloudRelayRig.apps, registry: spy, web: nil,
            charge: { _ in
                judged.change { $0.append(loop.isHere) }
                return nil
            }, world: rig.world)
        let entry = PeerUser.alice.device(1).entry(1)
        let body = Form((0..<count).map { ("notifications[\($0)]", Array(entry.utf8)) }).encoded()
        let inbound = try withBytes(body) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: "/notifications", body: bytes)
        }
        let isBack = try await withTaskExecutorPreference(loop) {
            _ = try await relay.receive(inbound)
            return loop.isHere
        }
        #expect(isBack)
        let isSmall = count == 2
        // The device is not here: a second look-up makes that cost as much as one that is.
        #expect(spy.wasOnLoop.value == [isSmall, isSmall])
        #expect(!judged.value.isEmpty && judged.value.allSatisfy { $0 == isSmall })
    }
}
