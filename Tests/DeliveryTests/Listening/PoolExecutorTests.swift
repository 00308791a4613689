import Foundation
import PushTesting
import Testing
import WorkPool

/// Leaves 64 bytes deep in the calling thread's stack.
///
/// - Returns: their address.
@inline(never)
private func leave(below depth: Int) -> UInt {
    withUnsafeTemporaryAllocation(byteCount: 256, alignment: 16) { room in
        room.initializeMemory(as: UInt8.self, repeating: depth == 0 ? 0xA7 : 0)
        return depth == 0 ? UInt(bitPattern: room.baseAddress) : leave(below: depth - 1)
    }
}

@Suite("Work beside the event loops", .timeLimit(.minutes(30)))
struct PoolExecutorTests {
    /// - Returns: nil when nothing is mapped there any more.
    private func bytes(at address: UInt) throws -> [UInt8]? {
        let memory = open("/proc/self/mem", O_RDONLY)
        try #require(memory >= 0)
        defer { close(memory) }
        var found = [UInt8](repeating: 0, count: 64)
        return pread(memory, &found, found.count, off_t(address)) == found.count ? found : nil
    }

    @Test("Tasks and their children run, whatever their priority")
    func runs() async {
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 1...100 {
                let priority: TaskPriority = number % 2 == 0 ? .utility : .high
                group.addTask(executorPreference: PoolExecutor.shared, priority: priority) {
                    await Task.yield()
                    async let child = number
                    return await child
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 5_050)
    }

    @Test("What a job has left on its thread's stack is wiped behind it")
    func wipes() async throws {
        let known = [UInt8](repeating: 0xA7, count: 64)
        let isRead = try known.withUnsafeBytes { try bytes(at: UInt(bitPattern: $0.baseAddress)) == known }
        #expect(isRead)
        let address = await Task(executorPreference: PoolExecutor.shared) { leave(below: 15) }.value
        try await asked(for: "a wiped stack") {
            try bytes(at: address).map { !$0.contains(0xA7) } ?? true
        }
    }
}
