import Primitives
import PushModel

/// Seals and opens columns: key number (4) ‖ nonce (24) ‖ XChaCha20-Poly1305, with the row's place as
/// associated data, so that no sealed value fits another row, space or table.
struct Sealer: Sendable {
    static let headBytes = 4 + XChaCha20Poly1305.nonceBytes
    static let overheadBytes = headBytes + XChaCha20Poly1305.overheadBytes

    let keys: AtRestKeys
    let random: RandomStream

    enum Fault: Error {
        /// Sealed with a key that the key file does not have.
        case unknownKey
        /// Changed bytes, or a row in the wrong place.
        case doesNotOpen
    }

    /// Seals what `write` puts into a scratch of at most `limit` bytes. One allocation remains: the result.
    func seal(
        atMost limit: Int, with associated: UnsafeRawBufferPointer,
        _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) -> [UInt8] {
        withUnsafeTemporaryAllocation(byteCount: max(limit, 1), alignment: 16) { scratch in
            let count = write(scratch)
            let plain = UnsafeRawBufferPointer(rebasing: scratch[..<count])
            let sealed = [UInt8](unsafeUninitializedCapacity: count + Self.overheadBytes) { out, used in
                let out = UnsafeMutableRawBufferPointer(
                    start: out.baseAddress!, count: count + Self.overheadBytes)
                out.storeBytes(of: keys.seal[0].number.bigEndian, as: UInt32.self)
                for word in 0..<3 {
                    out.storeBytes(of: random.next(), toByteOffset: 4 + 8 * word, as: UInt64.self)
                }
                keys.seal[0].key.reveal { key in
                    XChaCha20Poly1305.seal(
                        plain, with: associated, key: key,
                        nonce: UnsafeRawBufferPointer(rebasing: out[4..<Self.headBytes]),
                        into: UnsafeMutableRawBufferPointer(rebasing: out[Self.headBytes...]))
                }
                used = count + Self.overheadBytes
            }
            wipe(UnsafeMutableRawBufferPointer(rebasing: scratch[..<count]))
            return sealed
        }
    }

    /// Opens into storage of its own, which is wiped when let go.
    func open(_ sealed: [UInt8], with associated: UnsafeRawBufferPointer) throws(Fault) -> Secret {
        guard sealed.count >= Self.overheadBytes else { throw .doesNotOpen }
        let number = sealed[..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
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
