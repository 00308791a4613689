import PushModel
import Synchronization

/// The clear form of what stands in sealed columns: fields of a stored form (``StoredWriter``) behind a
/// version byte.
enum StoredCodec {
    private static let version: UInt8 = 1

    // MARK: pushes

    /// Bytes that ``write(_:_:_:instance:to:)`` needs.
    static func size(
        _ origin: Secret, _ record: RecordKey?, _ message: ProviderMessage, instance: ConfiguredName
    ) -> Int {
        let record = 9 + (record.map { $0.space.text.utf8.count + $0.name.count } ?? 0)
        let head = 2 + 4 + instance.text.utf8.count + 4 + origin.count + record
        return head + message.value.storedSize
    }

    /// A push's own names first, so that they can be digested anew under another lookup key.
    ///
    /// - Returns: the bytes used: exactly the size, less the optional fields that are absent.
    static func write(
        _ origin: Secret, _ record: RecordKey?, _ message: ProviderMessage, instance: ConfiguredName,
        to out: UnsafeMutableRawBufferPointer
    ) -> Int {
        var writer = StoredWriter(out)
        writer.put(version)
        writer.put(instance.text)
        writer.put(origin)
        put(record, to: &writer)
        message.value.write(to: &writer)
        return writer.count
    }

    /// `nil` when the bytes are not what ``write(_:_:_:instance:to:)`` writes, or are a message of no service
    /// of the list.
    static func readPush(
        _ bytes: UnsafeRawBufferPointer, _ services: PushServices
    ) -> (ConfiguredName, ProviderMessage)? {
        var reader = StoredReader(bytes)
        guard reader.byte() == version, let instance = reader.text().flatMap({ ConfiguredName($0) }),
            reader.field() != nil, key(&reader) != nil, let message = services.read(&reader), reader.isAtEnd
        else { return nil }
        return (instance, message)
    }

    // MARK: records

    /// The names first, so that they can be digested anew under another lookup key.
    static func size(_ record: Record) -> Int { bareSize(record) + padding(record) }

    private static func bareSize(_ record: Record) -> Int {
        func size(_ key: RecordKey?) -> Int {
            9 + (key.map { $0.space.text.utf8.count + $0.name.count } ?? 0)
        }
        return 1 + 4 + record.key.name.count + size(record.owner) + size(record.address) + 4
            + record.body.count
    }

    static func write(_ record: Record, to out: UnsafeMutableRawBufferPointer) -> Int {
        var writer = StoredWriter(out)
        writer.put(version)
        writer.put(record.key.name)
        put(record.owner, to: &writer)
        if let address = record.address, address.space.isAddresses {
            put(RecordKey(address.space, padded(address.name, by: padding(record))), to: &writer)
        } else {
            put(record.address, to: &writer)
        }
        writer.put(record.body)
        return writer.count
    }

    // MARK: sizes of registrations

    /// The room for a device token and its app, which each registration has twice: in its address and in its
    /// body. Google's tokens are shorter than that, and Apple's much shorter.
    private static let addressRoom = 180
    private static let smallSize = 512
    private static let sizeStep = 1_024
    /// Of the name's own length, behind the padding.
    private static let trailerBytes = 4

    /// How many bytes are added to a registration's address, so that its size does not tell Apple's device
    /// from Google's: as many as if the token had ``addressRoom``, and then up to half a KiB or whole ones.
    /// They stand in the name of the address.
    private static func padding(_ record: Record) -> Int {
        guard let address = record.address, address.space.isAddresses else { return 0 }
        let bare = bareSize(record) + trailerBytes
        let roomy = bare + 2 * max(0, addressRoom - address.name.count)
        let size = roomy <= smallSize ? smallSize : (roomy + sizeStep - 1) / sizeStep * sizeStep
        return size - bare + trailerBytes
    }

    /// Name ‖ zeros ‖ length of the name (4, big-endian).
    private static func padded(_ name: Secret, by padding: Int) -> Secret {
        Secret(count: name.count + padding) { out in
            out.initializeMemory(as: UInt8.self, repeating: 0)
            name.reveal { out.copyMemory(from: $0) }
            out.storeBytes(
                of: UInt32(clamping: name.count).bigEndian, toByteOffset: out.count - trailerBytes,
                as: UInt32.self)
        }
    }

    private static func unpadded(_ bytes: UnsafeRawBufferPointer) -> Secret? {
        guard bytes.count >= trailerBytes else { return nil }
        let end = bytes.count - trailerBytes
        let count = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self)))
        return count <= end ? Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[..<count])) : nil
    }

    private static func put(_ key: RecordKey?, to writer: inout StoredWriter) {
        writer.put(UInt8(key == nil ? 0 : 1))
        guard let key else { return }
        writer.put(key.space.text)
        writer.put(key.name)
    }

    struct RecordBody {
        var name: Secret
        var owner: RecordKey?
        var address: RecordKey?
        var body: Secret
    }

    /// - Parameter name: the record's, where it was found by that. Else it is copied from the bytes.
    static func readRecord(_ bytes: UnsafeRawBufferPointer, named name: Secret? = nil) -> RecordBody? {
        var reader = StoredReader(bytes)
        guard reader.byte() == version, let written = reader.field(), let owner = key(&reader),
            let address = key(&reader, isAddress: true), let body = reader.secret(), reader.isAtEnd
        else { return nil }
        let name = name ?? Secret(copying: written)
        return RecordBody(name: name, owner: owner, address: address, body: body)
    }

    private struct KnownSpace {
        let space: Space
        /// Asked of each row; the library's comparison of two ends is dear.
        let isAddresses: Bool
    }

    /// Spaces that rows have named, each at a place that follows from its text: a store has a handful, and
    /// each opened row names two.
    private static let spaces = Mutex([KnownSpace?](repeating: nil, count: 64))

    private static func space(_ text: UnsafeRawBufferPointer) -> KnownSpace {
        // Eight bytes at a time; the upper bits of a product depend on all of them.
        var mixed = UInt64(text.count)
        text.eachWord { mixed = (mixed ^ $0) &* 0x9E37_79B9_7F4A_7C15 }
        let place = Int(mixed >> 58)
        return spaces.withLock { spaces in
            if let known = spaces[place], known.space.isWritten(text) { return known }
            let space = Space(text: String(decoding: text, as: UTF8.self))
            let known = KnownSpace(space: space, isAddresses: space.isAddresses)
            spaces[place] = known
            return known
        }
    }

    /// - Parameter isAddress: its name may be padded. No copy is made of the padding.
    private static func key(_ reader: inout StoredReader, isAddress: Bool = false) -> RecordKey?? {
        switch reader.byte() {
        case 0:
            return .some(nil)
        case 1:
            guard let text = reader.field(), let field = reader.field() else { return nil }
            let known = space(text)
            guard isAddress, known.isAddresses else {
                return .some(RecordKey(known.space, Secret(copying: field)))
            }
            return unpadded(field).map { .some(RecordKey(known.space, $0)) }
        default:
            return nil
        }
    }
}

extension Space {
    fileprivate func isWritten(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var text = text
        return text.withUTF8 { text in
            guard text.count == bytes.count else { return false }
            var difference: UInt64 = 0
            var at = 0
            let own = UnsafeRawBufferPointer(text)
            bytes.eachWord { word in
                difference |= word ^ own.word(at: at)
                at += 8
            }
            return difference == 0
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Eight bytes from there, or a number of those that are left.
    fileprivate func word(at start: Int) -> UInt64 {
        if start + 8 <= count { return loadUnaligned(fromByteOffset: start, as: UInt64.self) }
        var word: UInt64 = 0
        for at in start..<count { word = word << 8 | UInt64(self[at]) }
        return word
    }

    fileprivate func eachWord(_ body: (UInt64) -> Void) {
        for at in stride(from: 0, to: count, by: 8) { body(word(at: at)) }
    }
}
