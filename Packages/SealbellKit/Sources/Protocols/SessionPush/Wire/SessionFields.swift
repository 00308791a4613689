import PushModel
import WireFormats

/// The members of one element of a call, as the caller wrote them. Borrowed from the body.
///
/// If a name occurs more than once, the last member counts. `null` means absent. Unknown members are ignored.
struct SessionFields {
    private(set) var account: Value?
    private(set) var sessionKey: Value?
    private(set) var namespaces: Value?
    private(set) var wantsData: Value?
    private(set) var signedAt: Value?
    private(set) var signature: Value?
    private(set) var service: Value?
    private(set) var serviceInfo: Value?
    private(set) var encryptionKey: Value?
    private(set) var subaccount: Value?
    private(set) var subaccountSignature: Value?
    private(set) var subkeyTag: Value?

    /// One value, checked to be JSON.
    struct Value {
        let raw: UnsafeRawBufferPointer
        let kind: JSONKind

        var reader: JSONReader { JSONReader(raw, depthLimit: SessionLimits.jsonDepth) }
    }

    init(_ reader: inout JSONReader) throws(FormatError) {
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            let raw = try reader.skipValue()
            self.set(name, kind == .null ? nil : Value(raw: raw, kind: kind))
        }
    }

    private mutating func set(_ name: JSONStringSlice, _ value: Value?) {
        if name.equals("pubkey") { return account = value }
        if name.equals("session_ed25519") { return sessionKey = value }
        if name.equals("namespaces") { return namespaces = value }
        if name.equals("data") { return wantsData = value }
        if name.equals("sig_ts") { return signedAt = value }
        if name.equals("signature") { return signature = value }
        if name.equals("service") { return service = value }
        if name.equals("service_info") { return serviceInfo = value }
        if name.equals("enc_key") { return encryptionKey = value }
        if name.equals("subaccount") { return subaccount = value }
        if name.equals("subaccount_sig") { return subaccountSignature = value }
        if name.equals("subkey_tag") { return subkeyTag = value }
    }

    // MARK: values

    static func bytes(_ value: Value?, _ name: StaticString, _ count: Int) throws(SessionError) -> Secret {
        guard let bytes = try optionalBytes(value, name, count) else {
            throw SessionError(.missingField, field: name)
        }
        return bytes
    }

    static func optionalBytes(
        _ value: Value?, _ name: StaticString, _ count: Int
    ) throws(SessionError) -> Secret? {
        guard let value else { return nil }
        guard let text = string(value), let bytes = ByteField.decode(text, count: count) else {
            throw SessionError(.malformedField, field: name)
        }
        return bytes
    }

    static func integer(_ value: Value?, _ name: StaticString) throws(SessionError) -> Int64 {
        guard let value else { throw SessionError(.missingField, field: name) }
        guard let number = number(value) else { throw SessionError(.malformedField, field: name) }
        return number
    }

    /// Absent is false.
    static func flag(_ value: Value?, _ name: StaticString) throws(SessionError) -> Bool {
        guard let value else { return false }
        guard value.kind == .bool else { throw SessionError(.malformedField, field: name) }
        return value.raw.count == 4
    }

    /// Strictly ascending.
    static func namespaceList(_ value: Value?) throws(SessionError) -> [Int16] {
        let name: StaticString = "namespaces"
        guard let value else { throw SessionError(.missingField, field: name) }
        guard value.kind == .array else { throw SessionError(.malformedField, field: name) }
        do throws(FormatError) {
            var list: [Int16] = []
            var reader = value.reader
            try reader.beginArray()
            while try reader.nextElement() {
                guard let number = try reader.readNumber().int64.flatMap({ Int16(exactly: $0) }),
                    list.last.map({ $0 < number }) ?? true, list.count < SessionLimits.namespaces
                else { throw FormatError(.wrongType) }
                list.append(number)
            }
            guard !list.isEmpty else { throw FormatError(.wrongType) }
            return list
        } catch {
            throw SessionError(.malformedField, field: name)
        }
    }

    static func service(_ value: Value?) throws(SessionError) -> SessionService {
        guard let value else { throw SessionError(.missingField, field: "service") }
        guard let text = string(value) else { throw SessionError(.malformedField, field: "service") }
        guard text.raw.count <= SessionLimits.serviceBytes,
            let service = SessionService(rawValue: text.string())
        else { throw SessionError(.unknownService) }
        guard service != .huawei else { throw SessionError(.unavailableService) }
        return service
    }

    /// The member `token`; others are ignored.
    static func token(_ value: Value?, for service: SessionService) throws(SessionError) -> Secret {
        guard let value else { throw SessionError(.missingField, field: "service_info") }
        guard value.kind == .object else { throw SessionError(.malformedField, field: "service_info") }
        var token: Secret?
        do throws(FormatError) {
            var reader = value.reader
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("token") {
                    guard try !reader.readNull() else {
                        token = nil
                        continue
                    }
                    let text = try reader.readString()
                    // A token that is too long is refused below, and not copied here.
                    let isLong = text.raw.count > SessionLimits.tokenBytes.upperBound
                    token = isLong ? Secret([]) : text.secret()
                } else {
                    try reader.skipValue()
                }
            }
        } catch {
            throw SessionError(.malformedField, field: "token")
        }
        guard let token else { throw SessionError(.missingField, field: "token") }
        guard service.takes(token) else { throw SessionError(.invalidToken) }
        return service.isApple ? APNsMessage.canonical(token) : token
    }

    private static func string(_ value: Value) -> JSONStringSlice? {
        guard value.kind == .string else { return nil }
        var reader = value.reader
        // The value was read before: it is a string.
        return try? reader.readString()
    }

    private static func number(_ value: Value) -> Int64? {
        guard value.kind == .number else { return nil }
        var reader = value.reader
        // The value was read before: it is a number.
        return (try? reader.readNumber())?.int64
    }
}
