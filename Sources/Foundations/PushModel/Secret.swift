#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// Bytes that must not be seen: keys, device tokens, ciphertexts, names of people.
///
/// The storage is owned, never shared with a `String` or an array, and wiped when the last holder lets go.
/// A `Secret` prints as `‹secret›` in every way the language has (`description`, `debugDescription`,
/// `Mirror`), is neither `Codable` nor `Hashable`, and compares in time that depends on the lengths alone.
/// It opens only through ``reveal(_:)``.
public struct Secret: Sendable {
    private let storage: Storage

    /// Copies `bytes` into storage of its own. The caller wipes its copy if it held one for itself.
    public init(_ bytes: some Collection<UInt8>) {
        storage = Storage(count: bytes.count)
        _ = storage.bytes.initialize(from: bytes)
    }

    /// Copies the raw bytes.
    public init(copying raw: UnsafeRawBufferPointer) {
        storage = Storage(count: raw.count)
        if raw.count > 0 { UnsafeMutableRawBufferPointer(storage.bytes).copyMemory(from: raw) }
    }

    /// Makes a secret of exactly `count` bytes and lets `fill` write them; no other copy comes into being.
    public init<Failure: Error>(
        count: Int, fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        storage = Storage(count: count)
        try fill(UnsafeMutableRawBufferPointer(storage.bytes))
    }

    /// Number of bytes. A length is not a secret here; where it is, pad before.
    public var count: Int { storage.bytes.count }

    /// Lends the bytes for the length of `body`. They must not be copied into anything that outlives a wipe
    /// unless `docs/decisions/` lists the copy.
    public func reveal<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(storage.bytes))
    }

    /// Compares without an early exit.
    public static func == (left: Secret, right: Secret) -> Bool {
        left.reveal { l in right.reveal { r in constantTimeEqual(l, r) } }
    }

    private final class Storage: @unchecked Sendable {
        // Safety: `bytes` is written only inside the initialisers, before the value is shared.
        let bytes: UnsafeMutableBufferPointer<UInt8>

        init(count: Int) {
            bytes = .allocate(capacity: count)
            bytes.initialize(repeating: 0)
        }

        deinit {
            wipe(UnsafeMutableRawBufferPointer(bytes))
            bytes.deallocate()
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "‹secret›" }
    public var debugDescription: String { "‹secret›" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Overwrites memory with zeros, by the C library's call that no optimiser takes out. (A loop of ours that
/// the optimiser may not touch cost more than all the rest of a send.)
public func wipe(_ memory: UnsafeMutableRawBufferPointer) {
    guard let base = memory.baseAddress, memory.count > 0 else { return }
    #if canImport(Darwin)
    memset_s(base, memory.count, 0, memory.count)
    #else
    explicit_bzero(base, memory.count)
    #endif
}

/// Equality of two byte strings in time that depends on their lengths alone.
public func constantTimeEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in 0..<left.count { difference |= left[index] ^ right[index] }
    return difference == 0
}
