// Tells whether a sanitizer works here: without a word it must say nothing, with one it must report that fault.
import Dispatch
import Glibc
import Synchronization

final class Shared: @unchecked Sendable {
    var unprotected = 0
    let numbers = Mutex([Int]())
}

let shared = Shared()

/// What is handed over by a continuation.
final class Parcel: @unchecked Sendable {
    var number = 0
}

/// A task whose continuation another thread has resumed before it comes to wait. The atomic orders nothing.
func resumedFirst(_ resumed: Ticket) async -> Int {
    let parcel = await withUnsafeContinuation { (continuation: UnsafeContinuation<Parcel, Never>) in
        // A thread beside those that run tasks, which all wait here.
        DispatchQueue(label: "resumes").async {
            let parcel = Parcel()
            parcel.number = 1
            continuation.resume(returning: parcel)
            resumed.stamp.store(true, ordering: .relaxed)
        }
        while !resumed.stamp.load(ordering: .relaxed) { sched_yield() }
    }
    parcel.number += 1
    return parcel.number
}

final class Ticket: Sendable {
    let stamp = Atomic(false)
}

/// What ThreadSanitizer must not report: a mutex that threads meet at, tasks, continuations.
func sound() async {
    await withTaskGroup(of: Void.self) { group in
        for number in 0..<8 {
            group.addTask {
                for _ in 0..<2_000 { shared.numbers.withLock { $0 = [($0.first ?? 0) &+ number] } }
                await withCheckedContinuation { continuation in
                    DispatchQueue.global().async { continuation.resume() }
                }
                for _ in 0..<20 where await resumedFirst(Ticket()) != 2 { exit(1) }
            }
        }
    }
}

/// Two threads that nothing orders.
func race() {
    var threads = [pthread_t](repeating: 0, count: 2)
    for at in threads.indices {
        pthread_create(&threads[at], nil, { _ in
            shared.unprotected += 1
            return nil
        }, nil)
    }
    for thread in threads { pthread_join(thread, nil) }
}

/// A byte behind the end of a block.
func overflow() -> UInt8 {
    let block = UnsafeMutablePointer<UInt8>.allocate(capacity: 8)
    defer { block.deallocate() }
    block.initialize(repeating: 0, count: 8)
    return block[8 + shared.unprotected]
}

@main struct Trial {
    static func main() async {
        switch CommandLine.arguments.dropFirst().first {
        case "thread": race()
        case "address": exit(CInt(overflow()) & 0)
        default: await sound()
        }
    }
}
