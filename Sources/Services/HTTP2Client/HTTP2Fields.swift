package import PushModel

/// The fields of a request that many requests share, in memory that stays put, so that the session reads them
/// where they are. Built once for each kind of request and kept.
///
/// A request's other fields stand in its ``HTTP2Head``, in the order of `varying`; the first of them is
/// always `:path`.
package final class HTTP2HeaderTemplate: @unchecked Sendable {
    // Safety: the memory is written in the initialiser only.

    /// Whether HPACK may remember a field (RFC 7541 §6.2).
    package enum Indexing: Sendable {
        /// Never, on no hop: device tokens, credentials, collapse ids (§6.2.3).
        case never
        /// The first request of a connection plants the name, later ones are never indexed (push-services
        /// §2.3).
        case nameOnce
    }

    struct Slice {
        let name: UnsafeMutablePointer<UInt8>, nameCount: Int, value: UnsafeMutablePointer<UInt8>,
            valueCount: Int
    }
    struct Varying { let name: UnsafeMutablePointer<UInt8>, nameCount: Int, indexing: Indexing }

    let pseudo: [Slice]
    let fixed: [Slice]
    let varying: [Varying]
    private let arena: UnsafeMutablePointer<UInt8>

    /// At most this many varying fields: their lengths travel in one register.
    static let varyingLimit = 8

    /// - Parameters:
    ///   - authority: the value of `:authority`.
    ///   - fixed: lower-case names and their values, the same for all requests of this kind.
    ///   - varying: names of the fields that come with each request after `:path`; a length of 0 leaves one
    /// out.
    package init(
        authority: String, fixed: [(name: String, value: String)],
        varying: [(name: String, indexing: Indexing)]
    ) {
        precondition(varying.count < Self.varyingLimit)
        let pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", authority)]
        let names = [(":path", Indexing.never)] + varying.map { ($0.name, $0.indexing) }
        let total =
            (pseudo + fixed.map { ($0.name, $0.value) }).reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count }
            + names.reduce(0) { $0 + $1.0.utf8.count }
        let arena = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, total))
        var end = 0
        func place(_ text: String) -> (UnsafeMutablePointer<UInt8>, Int) {
            let start = arena + end
            for byte in text.utf8 {
                arena[end] = byte
                end += 1
            }
            return (start, text.utf8.count)
        }
        func slice(_ name: String, _ value: String) -> Slice {
            let (name, nameCount) = place(name)
            let (value, valueCount) = place(value)
            return Slice(name: name, nameCount: nameCount, value: value, valueCount: valueCount)
        }
        self.pseudo = pseudo.map { slice($0.0, $0.1) }
        self.fixed = fixed.map { slice($0.name, $0.value) }
        self.varying = names.map { name, indexing in
            let (start, count) = place(name)
            return Varying(name: start, nameCount: count, indexing: indexing)
        }
        self.arena = arena
    }

    deinit { arena.deallocate() }

    /// Fields of a request of this kind at most, its authorization among them.
    var fieldLimit: Int { pseudo.count + fixed.count + varying.count + 1 }
}

/// A credential's header value, in memory that stays put and is wiped at the end. Shared by all requests.
package final class HTTP2Authorization: @unchecked Sendable {
    // Safety: the memory is written in the initialiser only.
    let bytes: UnsafeMutableBufferPointer<UInt8>

    /// Copies `scheme` and the token: `bearer eyJ…`.
    package init(scheme: StaticString, token: Secret) {
        bytes = .allocate(capacity: scheme.utf8CodeUnitCount + 1 + token.count)
        scheme.withUTF8Buffer { text in
            for (index, byte) in text.enumerated() { bytes.initializeElement(at: index, to: byte) }
        }
        bytes.initializeElement(at: scheme.utf8CodeUnitCount, to: UInt8(ascii: " "))
        token.reveal { raw in
            for (index, byte) in raw.enumerated() {
                bytes.initializeElement(at: scheme.utf8CodeUnitCount + 1 + index, to: byte)
            }
        }
    }

    deinit {
        wipe(UnsafeMutableRawBufferPointer(bytes))
        bytes.deallocate()
    }
}

/// The values of a request's own fields, one after another in one wiped block: `:path` first, then the
/// varying fields of the template in their order. The block stays put as long as somebody holds the head.
package struct HTTP2Head: Sendable {
    // Safety: the memory is written before the initialiser returns.
    nonisolated(unsafe) private let storage: Storage

    /// Writes values into a block of at most `capacity` bytes.
    package init(capacity: Int, _ write: (inout Writer) -> Void) {
        storage = Storage.make(capacity: capacity)
        // The bytes are there as long as somebody holds their object.
        defer { withExtendedLifetime(storage) {} }
        var writer = Writer(UnsafeMutableBufferPointer(start: storage.start, count: capacity))
        write(&writer)
        storage.withUnsafeMutablePointerToHeader { $0.pointee.lengths = writer.lengths }
    }

    /// Where the first value begins.
    var start: UnsafeMutablePointer<UInt8> { storage.start }
    var lengths: SIMD8<UInt16> { storage.withUnsafeMutablePointerToHeader { $0.pointee.lengths } }

    private struct Sizes {
        let capacity: Int
        var lengths = SIMD8<UInt16>(repeating: 0)
    }

    /// The values in one piece of memory with the object that counts who holds them.
    private final class Storage: ManagedBuffer<Sizes, UInt8> {
        static func make(capacity: Int) -> Storage {
            let made = create(minimumCapacity: capacity) { _ in Sizes(capacity: capacity) }
            return unsafeDowncast(made, to: Storage.self)
        }

        var start: UnsafeMutablePointer<UInt8> { withUnsafeMutablePointerToElements { $0 } }

        deinit {
            let capacity = withUnsafeMutablePointerToHeader { $0.pointee.capacity }
            wipe(UnsafeMutableRawBufferPointer(start: start, count: capacity))
        }
    }

    /// Appends to the current field; ``endField()`` goes to the next.
    package struct Writer {
        fileprivate let bytes: UnsafeMutableBufferPointer<UInt8>
        fileprivate var lengths = SIMD8<UInt16>(repeating: 0)
        private var end = 0
        private var fieldStart = 0
        private var field = 0

        fileprivate init(_ bytes: UnsafeMutableBufferPointer<UInt8>) { self.bytes = bytes }

        package mutating func append(_ byte: UInt8) {
            precondition(end < bytes.count)
            bytes.initializeElement(at: end, to: byte)
            end += 1
        }

        package mutating func append(_ text: StaticString) {
            text.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) }
        }

        package mutating func append(_ secret: Secret) {
            secret.reveal { append($0) }
        }

        package mutating func append(_ raw: UnsafeRawBufferPointer) {
            precondition(end + raw.count <= bytes.count)
            guard let from = raw.baseAddress, let to = bytes.baseAddress else { return }
            UnsafeMutableRawPointer(to + end).copyMemory(from: from, byteCount: raw.count)
            end += raw.count
        }

        /// Appends exactly `count` bytes, all of which `fill` must set.
        package mutating func append(count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
            precondition(count >= 0 && end + count <= bytes.count)
            let raw = UnsafeMutableRawBufferPointer(bytes)
            fill(UnsafeMutableRawBufferPointer(rebasing: raw[end..<end + count]))
            end += count
        }

        /// Decimal digits of a number that is not negative.
        package mutating func append(decimal number: Int64) {
            precondition(number >= 0)
            let start = end
            var rest = number
            repeat {
                append(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
            } while rest > 0
            var (low, high) = (start, end - 1)
            while low < high {
                bytes.swapAt(low, high)
                low += 1
                high -= 1
            }
        }

        package mutating func endField() {
            precondition(field < HTTP2HeaderTemplate.varyingLimit && end - fieldStart <= Int(UInt16.max))
            lengths[field] = UInt16(end - fieldStart)
            field += 1
            fieldStart = end
        }
    }
}
