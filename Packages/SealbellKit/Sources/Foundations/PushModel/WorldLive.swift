#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

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
        random: { UInt64.random(in: .min ... .max) })
}
