package import HTTP2Client
package import PushModel

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#endif

/// How an Android address is to be read (docs/push-services.md §4.2).
package enum FCMAddressKind: String, Sendable, Hashable, CaseIterable {
    /// 22 base64url characters without a colon are an installation id, all else a registration token.
    case auto
    case token, fid
}

/// Makes requests out of messages (docs/push-services.md §4.2). Pure.
///
/// The body is `{"message":{"token"|"fid":…,"android":{…},"data":{…}}}`, with `"validate_only":true` before
/// `message` where Google is to deliver nothing, with a `notification` of a fixed text where the message has
/// one, and nothing else: an `apns` block, which would send content through Google to Apple, cannot be
/// expressed: the message has no member for it, and the data must be one object, with nothing behind it.
package struct FCMRequest: Sendable {
    /// A message that Google would certainly refuse; it is not sent.
    package enum Refusal: Error, Sendable, Hashable {
        /// Empty, over 4,096 bytes, or with characters that no address has.
        case badAddress
        /// Over 4,096 bytes of data, names and values together.
        case tooLarge
        /// The collapse key holds control characters or quotes.
        case badCollapseKey
        /// The data is not one object without others inside.
        case badData

        var judged: (Outcome, Reason) {
            switch self {
            case .badAddress: (.unregistered(since: nil), .invalidRegistrationToken)
            case .tooLarge: (.rejected, .tooLargeToSend)
            case .badCollapseKey, .badData: (.rejected, .invalidArgument)
            }
        }
    }

    private let path: [UInt8]
    private let template: HTTP2HeaderTemplate
    private let addressKind: FCMAddressKind
    /// Google looks at the message and delivers nothing.
    private let validatesOnly: Bool

    /// docs/push-services.md §4.3.
    private static let dataLimitBytes = 4096
    private static let addressLimitBytes = 4096
    /// 28 days.
    private static let ttlLimit: Duration = .seconds(2_419_200)

    package init(
        authority: String, project: String, addressKind: FCMAddressKind, validatesOnly: Bool = false
    ) {
        self.validatesOnly = validatesOnly
        path = Array("/v1/projects/\(project)/messages:send".utf8)
        template = HTTP2HeaderTemplate(
            authority: authority, fixed: [("content-type", "application/json")], varying: [])
        self.addressKind = addressKind
    }

    package func request(
        for message: FCMMessage, authorization: HTTP2Authorization
    ) throws(Refusal) -> HTTP2Request {
        let head = HTTP2Head(capacity: path.count) { writer in
            path.withUnsafeBytes { writer.append($0) }
            writer.endField()
        }
        return HTTP2Request(
            template: template, head: head, authorization: authorization, body: try body(for: message))
    }

    /// The body, in one wiped block.
    package func body(for message: FCMMessage) throws(Refusal) -> Secret {
        try check(message)
        var parts = Parts()
        parts.add(validatesOnly ? trialName(for: message.address) : name(for: message.address))
        parts.add(message.address)
        parts.add(
            message.priority == .high
                ? "\",\"android\":{\"priority\":\"high\"" : "\",\"android\":{\"priority\":\"normal\"")
        if let ttl = message.ttl {
            parts.add(",\"ttl\":\"")
            parts.add(decimal: min(max(ttl, .zero), Self.ttlLimit).components.seconds)
            parts.add("s\"")
        }
        if let key = message.collapseKey {
            parts.add(",\"collapse_key\":\"")
            parts.add(key)
            parts.add("\"")
        }
        if let notice = message.notice {
            parts.add("},\"notification\":{\"body\":\"")
            parts.add(Secret(notice.utf8))
            parts.add("\"")
        }
        parts.add("},\"data\":")
        parts.add(message.data)
        parts.add("}}")
        return parts.joined()
    }

    private func name(for address: Secret) -> StaticString {
        switch addressKind {
        case .token: "{\"message\":{\"token\":\""
        case .fid: "{\"message\":{\"fid\":\""
        case .auto: Self.isInstallationID(address) ? "{\"message\":{\"fid\":\"" : "{\"message\":{\"token\":\""
        }
    }

    private func trialName(for address: Secret) -> StaticString {
        let isFID = addressKind == .fid || addressKind == .auto && Self.isInstallationID(address)
        return isFID
            ? "{\"validate_only\":true,\"message\":{\"fid\":\""
            : "{\"validate_only\":true,\"message\":{\"token\":\""
    }

    private static func isInstallationID(_ address: Secret) -> Bool {
        address.count == 22
            && address.reveal { bytes in
                bytes.allSatisfy {
                    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
                        || $0 == UInt8(ascii: "_")
                }
            }
    }

    private func check(_ message: FCMMessage) throws(Refusal) {
        guard (1...Self.addressLimitBytes).contains(message.address.count),
            Self.isPlain(message.address, space: false)
        else { throw .badAddress }
        if let key = message.collapseKey, key.count > 512 || !Self.isPlain(key, space: true) {
            throw .badCollapseKey
        }
        if let notice = message.notice, !Self.isPlain(Secret(notice.utf8), space: true) { throw .badData }
        guard message.data.reveal({ Self.isOneObject($0) }) else { throw .badData }
        // Names and values are never longer than the text around them: most messages need no count.
        if message.data.count > Self.dataLimitBytes,
            message.data.reveal({ Self.stringBytes(in: $0) }) > Self.dataLimitBytes
        {
            throw .tooLarge
        }
    }

    /// Visible ASCII that a JSON string holds without an escape.
    private static func isPlain(_ text: Secret, space: Bool) -> Bool {
        text.reveal { bytes in
            bytes.allSatisfy { byte in
                (byte > 0x20 || space && byte == 0x20) && byte < 0x7F && byte != UInt8(ascii: "\"")
                    && byte != UInt8(ascii: "\\")
            }
        }
    }

    /// Whether the text opens one object, holds no other and no list, and ends with it: what stands behind
    /// `data` in the body is ours then, whatever a role put in. Strings, nearly all of the text, are passed
    /// over by the C library.
    private static func isOneObject(_ text: UnsafeRawBufferPointer) -> Bool {
        guard let base = text.baseAddress, text.first == UInt8(ascii: "{"), text.last == UInt8(ascii: "}")
        else { return false }
        var at = 1
        while at < text.count - 1 {
            switch text[at] {
            case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "]"): return false
            case UInt8(ascii: "\""):
                guard let end = endOfString(base, text.count, from: at + 1) else { return false }
                at = end + 1
            default: at += 1
            }
        }
        return at == text.count - 1
    }

    /// Index of the quote that ends a string: the first with an even number of backslashes before it.
    private static func endOfString(_ base: UnsafeRawPointer, _ count: Int, from start: Int) -> Int? {
        var at = start
        while at < count, let found = memchr(base + at, Int32(UInt8(ascii: "\"")), count - at) {
            let end = base.distance(to: UnsafeRawPointer(found))
            var escapes = 0
            while end - escapes > start, base.load(fromByteOffset: end - escapes - 1, as: UInt8.self) == 0x5C
            {
                escapes += 1
            }
            if escapes.isMultiple(of: 2) { return end }
            at = end + 1
        }
        return nil
    }

    /// Bytes of all strings of a JSON text, escapes resolved: names and values of the data.
    private static func stringBytes(in text: UnsafeRawBufferPointer) -> Int {
        var (total, at, inside) = (0, 0, false)
        while at < text.count {
            let byte = text[at]
            at += 1
            if byte == UInt8(ascii: "\"") {
                inside.toggle()
            } else if inside, byte == UInt8(ascii: "\\"), at < text.count {
                // `\uXXXX` counts as the three bytes it takes at most; half a pair as two.
                let isCode = text[at] == UInt8(ascii: "u")
                if isCode, at + 4 < text.count {
                    let isHalf = text[at + 1] | 0x20 == UInt8(ascii: "d") && text[at + 2] >= UInt8(ascii: "8")
                    let isASCII =
                        text[at + 1] == UInt8(ascii: "0") && text[at + 2] == UInt8(ascii: "0")
                        && text[at + 3] < UInt8(ascii: "8")
                    let isShort = text[at + 1] == UInt8(ascii: "0") && text[at + 2] < UInt8(ascii: "8")
                    total += isASCII ? 1 : isHalf || isShort ? 2 : 3
                } else {
                    total += 1
                }
                at += isCode ? 5 : 1
            } else if inside {
                total += 1
            }
        }
        return total
    }
}

/// Pieces of a body, measured first and then written once.
private struct Parts {
    private enum Piece { case text(StaticString), secret(Secret), decimal(String) }
    private var pieces: [Piece] = []
    private var count = 0

    init() { pieces.reserveCapacity(12) }

    mutating func add(_ text: StaticString) {
        pieces.append(.text(text))
        count += text.utf8CodeUnitCount
    }

    mutating func add(_ secret: Secret) {
        pieces.append(.secret(secret))
        count += secret.count
    }

    mutating func add(decimal number: Int64) {
        let text = String(number)
        pieces.append(.decimal(text))
        count += text.utf8.count
    }

    func joined() -> Secret {
        Secret(count: count) { out in
            var end = 0
            func write(_ raw: UnsafeRawBufferPointer) {
                UnsafeMutableRawBufferPointer(rebasing: out[end..<end + raw.count]).copyMemory(from: raw)
                end += raw.count
            }
            for piece in pieces {
                switch piece {
                case .text(let text): text.withUTF8Buffer { write(UnsafeRawBufferPointer($0)) }
                case .secret(let secret): secret.reveal { write($0) }
                case .decimal(let text):
                    for byte in text.utf8 {
                        out[end] = byte
                        end += 1
                    }
                }
            }
        }
    }
}
