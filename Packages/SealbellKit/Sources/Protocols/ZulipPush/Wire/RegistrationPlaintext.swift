package import PushModel
import WireFormats

/// A push service, in this protocol's words.
public enum TokenKind: String, Sendable, Hashable, CaseIterable {
    /// Apple's.
    case apns
    /// Google's.
    case fcm
}

/// What a device seals to the relay (§4): compact JSON, UTF-8.
package struct RegistrationPlaintext: Sendable {
    package let kind: TokenKind
    /// 1 to 4096 characters; hex digits for APNs, in the case as given.
    package let token: Secret
    /// Unix seconds.
    package let timestamp: Int64
    /// The APNs topic; `nil` for FCM.
    package let appID: String?

    package init(kind: TokenKind, token: Secret, timestamp: Int64, appID: String?) {
        self.kind = kind
        self.token = token
        self.timestamp = timestamp
        self.appID = appID
    }

    /// Whose rules a plaintext follows.
    package enum Form: Sendable {
        /// v12 (§4): whole seconds, and an app id for APNs.
        case token
        /// v11 and the specification's own (§14.3): also RFC 3339, and the app id may be absent.
        case account
    }

    /// Reads the plaintext. Members that are not known are ignored; of doubles the last counts.
    ///
    /// - Throws: `.invalidRegistration`, whatever is wrong.
    package init(parsing plain: Secret, _ form: Form = .token) throws(ZulipError) {
        self = try plain.reveal { (bytes) throws(ZulipError) in
            do { return try Self.read(bytes, form) } catch { throw ZulipError(.invalidRegistration) }
        }
    }

    /// The plaintext. Members stand in the order of the released app.
    package func serialized() -> Secret {
        var writer = JSONWriter(reserving: token.count * 6 + 512)
        writer.beginObject()
        writer.member("token_kind", kind.rawValue)
        writer.member("token", utf8: token)
        writer.member("timestamp", timestamp)
        if let appID {
            writer.member("ios_app_id", appID)
        }
        writer.endObject()
        return writer.takeSecret()
    }

    private static func read(
        _ bytes: UnsafeRawBufferPointer, _ form: Form
    ) throws(FormatError) -> RegistrationPlaintext {
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        var kind: TokenKind?
        var token: Secret?
        var timestamp: Int64?
        var appID: String?
        var hasForeignAppID = false
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("token_kind") {
                kind = try readText(&reader).flatMap { TokenKind(rawValue: $0.string()) }
            } else if name.equals("token") {
                token = try readText(&reader)?.secret()
            } else if name.equals("timestamp") {
                timestamp = try readTime(&reader, form)
            } else if name.equals("ios_app_id") {
                let isNull = try reader.peek() == .null
                appID = try readText(&reader)?.string()
                hasForeignAppID = appID == nil && !isNull
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        guard let kind, let token, let timestamp, !hasForeignAppID, holds(token, kind),
            holds(appID, kind, form)
        else { throw FormatError(.wrongType) }
        return RegistrationPlaintext(kind: kind, token: token, timestamp: timestamp, appID: appID)
    }

    /// A member's text; `nil` for a value of another type, over which a double of the member may come yet.
    private static func readText(_ reader: inout JSONReader) throws(FormatError) -> JSONStringSlice? {
        if try reader.peek() == .string { return try reader.readString() }
        try reader.skipValue()
        return nil
    }

    /// Whole seconds. As deployed (§4) also written as a decimal string or with a fraction of nothing;
    /// `nil` for a time within a second, and for what is none.
    private static func readTime(_ reader: inout JSONReader, _ form: Form) throws(FormatError) -> Int64? {
        if try reader.peek() == .string {
            let text = try reader.readString()
            if let seconds = Int64(text.string()) { return seconds }
            guard form == .account else { return nil }
            return text.hasEscapes
                ? withBytes(text.decoded()) { RFC3339.seconds($0) } : RFC3339.seconds(text.raw)
        }
        guard try reader.peek() == .number else {
            try reader.skipValue()
            return nil
        }
        let number = try reader.readNumber()
        if number.isInteger { return number.int64 }
        // Up to 2⁵³ a double holds every whole number.
        guard let value = Double(String(decoding: number.raw, as: UTF8.self)), abs(value) <= 0x1p53 else {
            return nil
        }
        return Int64(exactly: value)
    }

    private static func holds(_ token: Secret, _ kind: TokenKind) -> Bool {
        token.reveal { bytes in
            // Characters are counted, so continuation bytes of UTF-8 are not.
            let characters = bytes.reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) }
            guard (1...ZulipLimits.tokenCharacters).contains(characters) else { return false }
            switch kind {
            case .apns:
                return bytes.count.isMultiple(of: 2) && bytes.allSatisfy { Hex.value(ofDigit: $0) != nil }
            case .fcm: return true
            }
        }
    }

    private static func holds(_ appID: String?, _ kind: TokenKind, _ form: Form) -> Bool {
        switch kind {
        case .fcm: return appID == nil
        case .apns:
            if appID == nil, form == .account { return true }
            guard let appID, (1...ZulipLimits.appIDBytes).contains(appID.utf8.count) else { return false }
            return appID.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E: true
                default: false
                }
            }
        }
    }
}
