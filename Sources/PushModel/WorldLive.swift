#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

import Synchronization

extension World {
    /// The machine's clocks and the system's random generator.
    package static let live = World(
        now: {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return UnixTime(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
        },
        instant: { ContinuousClock.now },
        sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { RandomWords.shared.next() })
}

/// The system's random generator, asked for 32 words at a time: a call into the kernel for each word is what
/// a push would pay four times over.
private final class RandomWords: Sendable {
    static let shared = RandomWords()
    /// 256 bytes, as much as one call of getentropy(3) may ask for.
    private static let count = 32
    private let words = Mutex<[UInt64]>([])

    func next() -> UInt64 {
        words.withLock { words in
            if words.isEmpty { words = Self.draw() }
            // What was handed out must not stay behind.
            let last = words.count - 1
            let word = words[last]
            words[last] = 0
            words.removeLast()
            return word
        }
    }

    private static func draw() -> [UInt64] {
        [UInt64](unsafeUninitializedCapacity: count) { out, used in
            let raw = UnsafeMutableRawBufferPointer(out)
            #if canImport(Darwin)
            arc4random_buf(raw.baseAddress, raw.count)
            #else
            // Fails only before the kernel's generator is ready, and then it waits instead.
            while getentropy(raw.baseAddress, raw.count) != 0 {}
            #endif
            used = count
        }
    }
}
