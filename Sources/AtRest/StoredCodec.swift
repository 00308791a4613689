import PushModel

/// The clear form of what stands in sealed columns: length-prefixed fields, big-endian, behind a version
/// byte.
enum StoredCodec {
    private static let version: UInt8 = 1

    /// Writes fields one behind the other into memory that is large enough.
    struct Writer {
        var out: UnsafeMutableRawBufferPointer
        var at = 0

        mutating func put(_ byte: UInt8) {
            out[at] = byte
            at += 1
        }
        mutating func put(word: Int64) {
            out.storeBytes(of: word.bigEndian, toByteOffset: at, as: Int64.self)
            at += 8
        }
        mutating func put(_ bytes: UnsafeRawBufferPointer) {
            out.storeBytes(of: UInt32(bytes.count).bigEndian, toByteOffset: at, as: UInt32.self)
            UnsafeMutableRawBufferPointer(rebasing: out[(at + 4)...]).copyMemory(from: bytes)
            at += 4 + bytes.count
        }
        mutating func put(_ secret: Secret) { secret.reveal { put($0) } }
        mutating func put(_ text: String) {
            var text = text
            text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
        }
    }

    /// Reads fields; `nil` when the bytes end too early.
    struct Reader {
        var bytes: UnsafeRawBufferPointer
        var at = 0

        mutating func byte() -> UInt8? {
            guard at < bytes.count else { return nil }
            at += 1
            return bytes[at - 1]
        }
        mutating func word() -> Int64? {
            guard bytes.count - at >= 8 else { return nil }
            at += 8
            return Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: at - 8, as: Int64.self))
        }
        mutating func field() -> UnsafeRawBufferPointer? {
            guard bytes.count - at >= 4 else { return nil }
            let count = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)))
            guard bytes.count - at - 4 >= count else { return nil }
            defer { at += 4 + count }
            return UnsafeRawBufferPointer(rebasing: bytes[(at + 4)..<(at + 4 + count)])
        }
        mutating func secret() -> Secret? { field().map { Secret(copying: $0) } }
        mutating func text() -> String? { field().map { String(decoding: $0, as: UTF8.self) } }
        var isAtEnd: Bool { at == bytes.count }
    }

    // MARK: pushes

    /// Bytes that ``write(_:instance:to:)`` needs.
    static func size(_ push: Push, instance: ConfiguredName) -> Int {
        let record = 9 + (push.record.map { $0.space.text.utf8.count + $0.name.count } ?? 0)
        let head = 2 + 4 + instance.text.utf8.count + 4 + push.origin.count + record
        switch push.message {
        case .apns(let push):
            return head + 1 + 4 + push.token.count + 4 + push.bundle.utf8.count + 4
                + push.pushType.rawValue.utf8.count + 1 + 9 + 5 + (push.collapseID?.count ?? 0) + 4
                + push.payload.count
        case .fcm(let push):
            return head + 1 + 4 + push.address.count + 9 + 5 + (push.collapseKey?.count ?? 0) + 4
                + push.data.count
        }
    }

    /// The push's own names first, so that they can be digested anew under another lookup key.
    ///
    /// - Returns: the bytes used: exactly the size, less the optional fields that are absent.
    static func write(
        _ push: Push, instance: ConfiguredName, to out: UnsafeMutableRawBufferPointer
    ) -> Int {
        var writer = Writer(out: out)
        writer.put(version)
        writer.put(instance.text)
        writer.put(push.origin)
        put(push.record, to: &writer)
        switch push.message {
        case .apns(let push):
            writer.put(push.topicForm == .suffixedByType ? 1 : 3)
            writer.put(push.token)
            writer.put(push.bundle)
            writer.put(push.pushType.rawValue)
            writer.put(push.priority)
            put(push.expiration?.milliseconds, to: &writer)
            put(push.collapseID, to: &writer)
            writer.put(push.payload)
        case .fcm(let push):
            writer.put(2)
            writer.put(push.address)
            writer.put(push.priority.rawValue)
            put(push.ttl?.wholeMilliseconds, to: &writer)
            put(push.collapseKey, to: &writer)
            writer.put(push.data)
        }
        return writer.at
    }

    private static func put(_ word: Int64?, to writer: inout Writer) {
        writer.put(word == nil ? 0 : 1)
        if let word { writer.put(word: word) }
    }

    private static func put(_ secret: Secret?, to writer: inout Writer) {
        writer.put(secret == nil ? 0 : 1)
        if let secret { writer.put(secret) }
    }

    /// `nil` when the bytes are not what ``write(_:instance:to:)`` writes.
    static func readPush(_ bytes: UnsafeRawBufferPointer) -> (ConfiguredName, ProviderMessage)? {
        var reader = Reader(bytes: bytes)
        guard reader.byte() == version, let instance = reader.text().flatMap({ ConfiguredName($0) }),
            reader.field() != nil, key(&reader) != nil, let kind = reader.byte()
        else { return nil }
        let message: ProviderMessage? =
            switch kind {
            case 1: readAPNs(&reader, .suffixedByType)
            case 2: readFCM(&reader)
            case 3: readAPNs(&reader, .asNamed)
            default: nil
            }
        guard let message, reader.isAtEnd else { return nil }
        return (instance, message)
    }

    private static func readAPNs(
        _ reader: inout Reader, _ form: APNsMessage.TopicForm
    ) -> ProviderMessage? {
        guard let token = reader.secret(), let bundle = reader.text(),
            let type = reader.text().flatMap({ APNsPushType(rawValue: $0) }), let priority = reader.byte(),
            let expiration = word(&reader), let collapse = secret(&reader), let payload = reader.secret()
        else { return nil }
        return .apns(
            APNsMessage(
                token: token, bundle: bundle, topicForm: form, pushType: type, priority: priority,
                expiration: expiration.map { UnixTime(milliseconds: $0) }, collapseID: collapse,
                payload: payload))
    }

    private static func readFCM(_ reader: inout Reader) -> ProviderMessage? {
        guard let address = reader.secret(),
            let priority = reader.byte().flatMap({ FCMMessage.Priority(rawValue: $0) }),
            let ttl = word(&reader), let collapse = secret(&reader), let data = reader.secret()
        else { return nil }
        return .fcm(
            FCMMessage(
                address: address, priority: priority, ttl: ttl.map { .milliseconds($0) },
                collapseKey: collapse, data: data))
    }

    /// Outer `nil`: the bytes are wrong; inner: the field is absent.
    private static func word(_ reader: inout Reader) -> Int64?? {
        switch reader.byte() {
        case 0: .some(nil)
        case 1: reader.word().map { .some($0) }
        default: nil
        }
    }

    private static func secret(_ reader: inout Reader) -> Secret?? {
        switch reader.byte() {
        case 0: .some(nil)
        case 1: reader.secret().map { .some($0) }
        default: nil
        }
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
        var writer = Writer(out: out)
        writer.put(version)
        writer.put(record.key.name)
        put(record.owner, to: &writer)
        put(record.address, to: &writer)
        writer.put(record.body)
        return writer.at
    }

    private static func put(_ key: RecordKey?, to writer: inout Writer) {
        writer.put(key == nil ? 0 : 1)
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
        var reader = Reader(bytes: bytes)
        guard reader.byte() == version, let name = reader.secret(), let owner = key(&reader),
            let address = key(&reader), let body = reader.secret(), reader.isAtEnd
        else { return nil }
        return RecordBody(name: name, owner: owner, address: address, body: body)
    }

    private static func key(_ reader: inout Reader) -> RecordKey?? {
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
