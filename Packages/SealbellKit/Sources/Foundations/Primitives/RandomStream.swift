import Clibsodium
package import PushModel
import Synchronization

/// Random words without a system call for each: ChaCha20 under a key drawn from the world.
///
/// For ids and nonces by the thousand. The key is replaced with each refill (fast erasure), so that what was
/// given out cannot be recomputed from memory.
package final class RandomStream: Sendable {
    private struct State {
        var key: Secret
        var words: [UInt64] = []
    }

    /// 512 words: one refill for about a hundred pushes.
    private static let refillWords = 512
    private let state: Mutex<State>

    package init(_ world: World) {
        state = Mutex(State(key: Secret(world.randomBytes(32))))
    }

    /// 64 random bits.
    package func next() -> UInt64 {
        state.withLock { state in
            if state.words.isEmpty { Self.refill(&state) }
            // What was given out must not stay behind.
            let last = state.words.count - 1
            let word = state.words[last]
            state.words[last] = 0
            state.words.removeLast()
            return word
        }
    }

    private static func refill(_ state: inout State) {
        Sodium.prepare()
        let nonce: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]
        var block = [UInt8](repeating: 0, count: 32 + 8 * refillWords)
        let length = block.count
        state.key.reveal { key in
            _ = crypto_stream_chacha20(&block, UInt64(length), nonce, key.octets)
        }
        block.withUnsafeMutableBytes { bytes in
            state.key = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[..<32]))
            for word in 0..<refillWords {
                state.words.append(bytes.loadUnaligned(fromByteOffset: 32 + 8 * word, as: UInt64.self))
            }
            sodium_memzero(bytes.baseAddress!, bytes.count)
        }
    }
}

extension World {
    /// The live world with random words from a stream: a push needs several, and a call into the kernel for
    /// each costs more than the rest of what they are for.
    package static func streaming() -> World {
        var world = World.live
        let stream = RandomStream(world)
        world.random = { stream.next() }
        return world
    }
}
