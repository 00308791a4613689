import PushModel

/// The clear form of what stands in sealed columns: fields of a stored form (``StoredWriter``) behind a
/// version byte.
enum StoredCodec {
    private static let version: UInt8 = 1

    // MARK: pushes

    /// Bytes that ``write(_:instance:to:)`` needs.
    static func size(_ push: Push, instance: ConfiguredName) -> Int {
        let record = 9 + (push.record.map { $0.space.text.utf8.count + $0.name.count } ?? 0)
        let head = 2 + 4 + instance.text.utf8.count + 4 + push.origin.count + record
        return head + push.message.value.storedSize
    }

    /// The push's own names first, so that they can be digested anew under another lookup key.
    ///
    /// - Returns: the bytes used: exactly the size, less the optional fields that are absent.
    static func write(
        _ push: Push, instance: ConfiguredName, to out: UnsafeMutableRawBufferPointer
    ) -> Int {
        var writer = StoredWriter(out)
        writer.put(version)
        writer.put(instance.text)
        writer.put(push.origin)
        put(push.record, to: &writer)
        push.message.value.write(to: &writer)
        return writer.count
    }

    /// `nil` when the bytes are not what ``write(_:instance:to:)`` writes, or are a message of no service of
    /// the list.
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
    static func size(_ record: Record) -> Int {
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
        put(record.address, to: &writer)
        writer.put(record.body)
        return writer.count
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

    static func readRecord(_ bytes: UnsafeRawBufferPointer) -> RecordBody? {
        var reader = StoredReader(bytes)
        guard reader.byte() == version, let name = reader.secret(), let owner = key(&reader),
            let address = key(&reader), let body = reader.secret(), reader.isAtEnd
        else { return nil }
        return RecordBody(name: name, owner: owner, address: address, body: body)
    }

    private static func key(_ reader: inout StoredReader) -> RecordKey?? {
        switch reader.byte() {
        case 0:
            return .some(nil)
        case 1:
            guard let space = reader.text(), let name = reader.secret() else { return nil }
            return .some(RecordKey(Space(text: space), name))
        default:
            return nil
        }
    }
}
