import Primitives
import PushModel
import Synchronization

/// Seals and opens columns: key number (4) ‖ nonce (24) ‖ XChaCha20-Poly1305, with the row's place as
/// associated data, so that no sealed value fits another row, space or table.
///
/// All keys of the file open; one of them seals, and may be exchanged for a newer one while others are
/// sealing (``SealKeyRotation``).
final class Sealer: Sendable {
    static let headBytes = 4 + XChaCha20Poly1305.nonceBytes
    static let overheadBytes = headBytes + XChaCha20Poly1305.overheadBytes

    private struct Ring {
        var keys: AtRestKeys
        var sealing: AtRestKeys.SealKey
        /// How often other keys were adopted.
        var epoch: UInt64 = 0
    }

    private let ring: Mutex<Ring>
    let random: RandomStream

    /// The newest key seals until another is told.
    init(keys: AtRestKeys, random: RandomStream) {
        ring = Mutex(Ring(keys: keys, sealing: keys.seal[0]))
        self.random = random
    }

    enum Fault: Error {
        /// Sealed with a key that the key file does not have.
        case unknownKey
        /// Changed bytes, or a row in the wrong place.
        case doesNotOpen
    }

    var keys: AtRestKeys { ring.withLock(\.keys) }
    /// The number of the key that seals.
    var sealing: UInt32 { ring.withLock(\.sealing.number) }

    /// Seals with this key of the file from now on; false when the file has none of that number.
    func use(_ number: UInt32) -> Bool {
        ring.withLock { ring in
            guard let key = ring.keys.seal.first(where: { $0.number == number }) else { return false }
            ring.sealing = key
            return true
        }
    }

    /// Opens with these keys from now on. They hold the one that seals.
    func adopt(_ keys: AtRestKeys) {
        ring.withLock { ring in
            ring.keys = keys
            ring.epoch += 1
        }
    }

    /// Changes when other keys are adopted: conclusions from rows that were opened before may then not hold.
    var epoch: UInt64 { ring.withLock(\.epoch) }

    /// Which key something was sealed with; `nil` when it is too short to have been sealed.
    static func number(of sealed: [UInt8]) -> UInt32? {
        guard sealed.count >= overheadBytes else { return nil }
        return sealed[..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }

    /// Seals what `write` puts into a scratch of at most `limit` bytes. One allocation remains: the result.
    func seal(
        atMost limit: Int, with associated: UnsafeRawBufferPointer,
        _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) -> [UInt8] {
        withUnsafeTemporaryAllocation(byteCount: max(limit, 1), alignment: 16) { scratch in
            let count = write(scratch)
            let plain = UnsafeRawBufferPointer(rebasing: scratch[..<count])
            let sealed = seal(plain, with: associated, ring.withLock(\.sealing))
            wipe(UnsafeMutableRawBufferPointer(rebasing: scratch[..<count]))
            return sealed
        }
    }

    /// Seals with one key of the file; `nil` when there is none of that number.
    func seal(_ number: UInt32, _ plain: [UInt8], with associated: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let key = keys.seal.first(where: { $0.number == number }) else { return nil }
        return plain.withUnsafeBytes { seal($0, with: associated, key) }
    }

    private func seal(
        _ plain: UnsafeRawBufferPointer, with associated: UnsafeRawBufferPointer, _ key: AtRestKeys.SealKey
    ) -> [UInt8] {
        let count = plain.count + Self.overheadBytes
        return [UInt8](unsafeUninitializedCapacity: count) { out, used in
            let out = UnsafeMutableRawBufferPointer(start: out.baseAddress!, count: count)
            out.storeBytes(of: key.number.bigEndian, as: UInt32.self)
            for word in 0..<3 {
                out.storeBytes(of: random.next(), toByteOffset: 4 + 8 * word, as: UInt64.self)
            }
            key.key.reveal { key in
                XChaCha20Poly1305.seal(
                    plain, with: associated, key: key,
                    nonce: UnsafeRawBufferPointer(rebasing: out[4..<Self.headBytes]),
                    into: UnsafeMutableRawBufferPointer(rebasing: out[Self.headBytes...]))
            }
            used = count
        }
    }

    /// The same content under the key that seals now.
    func sealAnew(_ sealed: [UInt8], with associated: UnsafeRawBufferPointer) throws(Fault) -> [UInt8] {
        let key = ring.withLock(\.sealing)
        return try open(sealed, with: associated).reveal { seal($0, with: associated, key) }
    }

    /// Opens into storage of its own, which is wiped when let go.
    func open(_ sealed: [UInt8], with associated: UnsafeRawBufferPointer) throws(Fault) -> Secret {
        guard let number = Self.number(of: sealed) else { throw .doesNotOpen }
        guard let key = keys.sealKey(number) else { throw .unknownKey }
        return try Secret(count: sealed.count - Self.overheadBytes) { out throws(Fault) in
            let isOpen = sealed.withUnsafeBytes { sealed in
                key.reveal { key in
                    XChaCha20Poly1305.open(
                        UnsafeRawBufferPointer(rebasing: sealed[Self.headBytes...]), with: associated,
                        key: key,
                        nonce: UnsafeRawBufferPointer(rebasing: sealed[4..<Self.headBytes]), into: out)
                }
            }
            guard isOpen else { throw .doesNotOpen }
        }
    }
}
