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
    // Safety: the bytes are written only inside the initialisers, before the value is shared.
    @usableFromInline nonisolated(unsafe) let storage: SecretStorage

    /// Copies `bytes` into storage of its own. The caller wipes its copy if it held one for itself.
    ///
    /// Inlined, so that it is specialised for each collection: the generic version would cost a thousand
    /// instructions.
    @inlinable
    public init(_ bytes: some Collection<UInt8>) {
        storage = SecretStorage.make(count: bytes.count)
        _ = UnsafeMutableBufferPointer(start: storage.start, count: storage.count).initialize(from: bytes)
    }

    /// Copies the raw bytes.
    @inlinable
    public init(copying raw: UnsafeRawBufferPointer) {
        storage = SecretStorage.make(count: raw.count)
        if raw.count > 0 { storage.bytes.copyMemory(from: raw) }
    }

    /// Makes a secret of exactly `count` bytes and lets `fill` write them; no other copy comes into being.
    ///
    /// - Throws: what `fill` throws.
    @inlinable
    public init<Failure: Error>(
        count: Int, fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        storage = SecretStorage.make(count: count)
        storage.start.initialize(repeating: 0, count: count)
        try fill(storage.bytes)
    }

    /// Number of bytes. A length is not a secret here; where it is, pad before.
    @inlinable
    public var count: Int { storage.count }

    /// Lends the bytes for the length of `body`. They must not be copied into anything that outlives a wipe
    /// unless `docs/decisions/` lists the copy.
    ///
    /// - Throws: what `body` throws.
    @inlinable
    public func reveal<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // The bytes are there as long as somebody holds their object.
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeRawBufferPointer(start: storage.start, count: storage.count))
    }

    /// Compares without an early exit.
    public static func == (left: Secret, right: Secret) -> Bool {
        left.reveal { l in right.reveal { r in constantTimeEqual(l, r) } }
    }
}

/// A secret's bytes, in one piece of memory with the object that counts who holds them: a push has a dozen
/// secrets.
@usableFromInline
final class SecretStorage: ManagedBuffer<Int, UInt8> {
    /// The bytes are not set yet.
    @inlinable
    static func make(count: Int) -> SecretStorage {
        unsafeDowncast(create(minimumCapacity: count) { _ in count }, to: SecretStorage.self)
    }

    /// By pointer: the property itself is checked for exclusive access each time.
    @inlinable
    var count: Int { withUnsafeMutablePointerToHeader { $0.pointee } }

    @inlinable
    var start: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

    @inlinable
    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: start, count: count) }

    deinit { wipe(bytes) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `‹secret›`, whatever it holds.
    public var description: String { "‹secret›" }
    /// `‹secret›`, whatever it holds.
    public var debugDescription: String { "‹secret›" }
    /// Without children.
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
