import PushModel
import Synchronization

/// Random numbers from a seed (SplitMix64), so that a trial's plan can be had again. What the machine does
/// with it is never the same twice.
final class TrialRandom: Sendable {
    private let state: Mutex<UInt64>

    init(seed: UInt64) { state = Mutex(seed) }

    func next() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// Uniform in `0..<bound`.
    func below(_ bound: Int) -> Int { Int(next().multipliedFullWidth(by: UInt64(bound)).high) }

    /// The machine's clocks with this randomness.
    func world() -> World {
        var world = World.live
        world.random = { self.next() }
        return world
    }
}
