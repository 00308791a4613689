#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import PushModel
import Secp256k1Keys

/// The cost of one attempt at an encrypted token on this machine.
package enum AttemptCost {
    /// Attempts in a round, and rounds. The cheapest round counts: other work on the core makes some rounds
    /// dearer, and none cheaper. Some twenty milliseconds in all.
    private static let attempts = 32
    private static let rounds = 3

    /// CPU time of one attempt that fails at the last step, as junk does; nearly all of it is the
    /// multiplication on the curve.
    package static func measure(_ world: World) -> Duration {
        let pair = Secp256k1KeyPair.generate(world)
        let sender = Secp256k1KeyPair.generate(world)
        let size = TokenFormat.shortTokenBytes
        let box = Secret(sender.publicKey.bytes + [UInt8](repeating: 0, count: size - 32))
        var least = Duration.seconds(1)
        for _ in 0..<rounds {
            let began = spent()
            // It fails, and the failure is what is timed.
            for _ in 0..<attempts { _ = try? TokenBox.decrypt(box, .mip05Short, with: pair) }
            least = min(least, (spent() - began) / attempts)
        }
        return least
    }

    /// CPU time of this thread.
    private static func spent() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }
}
