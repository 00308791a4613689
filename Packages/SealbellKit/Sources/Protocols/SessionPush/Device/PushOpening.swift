import Primitives
package import PushModel
import SealbellKit
import WireFormats

/// Opening what a push service delivered (§8.1, §8.2).
///
/// All forms that deployed servers send are read: metadata as JSON or as a dictionary, numbers of namespaces
/// left out, times left out, a message too long or not there, padding or none.
package enum PushOpening {
    /// - Parameter payload: base64 of nonce ‖ ciphertext ‖ tag.
    /// - Throws: `.doesNotOpen` for another key, changed or cut bytes and what is no base64;
    ///   `.malformedPush` for what opens and says nothing.
    static func open(_ payload: Secret, key: Secret) throws(SessionError) -> SessionMessage {
        let plain = try plaintext(of: payload, key: key)
        do throws(FormatError) {
            return try plain.reveal { (plain) throws(FormatError) in
                try read(UnsafeRawBufferPointer(rebasing: plain[..<unpadded(plain)]))
            }
        } catch { throw SessionError(.malformedPush) }
    }

    /// What is sealed, with its padding.
    package static func plaintext(of payload: Secret, key: Secret) throws(SessionError) -> Secret {
        let nonceBytes = XChaCha20Poly1305.nonceBytes
        let least = nonceBytes + XChaCha20Poly1305.overheadBytes
        do throws(FormatError) {
            var isOpen = false
            let plain = try payload.reveal { (text) throws(FormatError) -> Secret in
                guard let count = Base64.decodedCount(text), count >= least,
                    text.count <= KitLimits.deliveredBytes
                else { throw FormatError(.malformedBase64) }
                let sealed = try Secret(count: count) { (room) throws(FormatError) in
                    try Base64.decode(text, into: room)
                }
                return Secret(count: count - least) { out in
                    isOpen = sealed.reveal { sealed in
                        key.reveal { key in
                            XChaCha20Poly1305.open(
                                UnsafeRawBufferPointer(rebasing: sealed[nonceBytes...]),
                                with: UnsafeRawBufferPointer(start: nil, count: 0), key: key,
                                nonce: UnsafeRawBufferPointer(rebasing: sealed[..<nonceBytes]), into: out)
                        }
                    }
                }
            }
            guard isOpen else { throw FormatError(.malformedBase64) }
            return plain
        } catch { throw SessionError(.doesNotOpen) }
    }

    /// Where the zeros begin. The list ends with a letter, so that all of them are padding.
    private static func unpadded(_ plain: UnsafeRawBufferPointer) -> Int {
        (plain.lastIndex { $0 != 0 } ?? -1) + 1
    }

    private static func read(_ plain: UnsafeRawBufferPointer) throws(FormatError) -> SessionMessage {
        var reader = BencodeReader(plain)
        try reader.beginList()
        guard try reader.nextElement() else { throw FormatError(.malformedBencode) }
        let metadata: PushMetadata
        switch try reader.peek() {
        case .string: metadata = try PushMetadata(json: try reader.readString())
        case .dictionary: metadata = try PushMetadata(dictionary: try reader.skipValue())
        case .integer, .list: throw FormatError(.wrongType)
        }
        var data: Secret?
        if try reader.nextElement() {
            let text = try reader.readString()
            if !text.isEmpty { data = Secret(copying: text) }
            // What later versions may add.
            while try reader.nextElement() { try reader.skipValue() }
        }
        try reader.end()
        return try metadata.message(data)
    }
}

/// The metadata of a push, in either spelling.
private struct PushMetadata {
    private var account: Secret?
    private var hash: Secret?
    private var namespace: Int16?
    private var sentAt: Int64?
    private var expiresAt: Int64?
    private var length: Int64?
    private var isTooLong = false

    init(json: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(json)
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if try reader.readNull() { continue }
            if name.equals("@") {
                account = try reader.readString().secret()
            } else if name.equals("#") {
                hash = try reader.readString().secret()
            } else if name.equals("n") {
                namespace = try Self.namespace(try reader.readNumber().int64)
            } else if name.equals("t") {
                sentAt = try Self.number(try reader.readNumber().int64)
            } else if name.equals("z") {
                expiresAt = try Self.number(try reader.readNumber().int64)
            } else if name.equals("l") {
                length = try Self.number(try reader.readNumber().int64)
            } else if name.equals("B") {
                isTooLong =
                    try reader.peek() == .bool ? try reader.readBool() : try reader.readNumber().int64 != 0
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
    }

    init(dictionary: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = BencodeReader(dictionary)
        try reader.beginDictionary()
        while let key = try reader.nextKey() {
            switch key.count == 1 ? key[0] : 0 {
            case UInt8(ascii: "@"): account = Secret(copying: try reader.readString())
            case UInt8(ascii: "#"): hash = Secret(copying: try reader.readString())
            case UInt8(ascii: "n"): namespace = try Self.namespace(try reader.readInteger().int64)
            case UInt8(ascii: "t"): sentAt = try Self.number(try reader.readInteger().int64)
            case UInt8(ascii: "z"): expiresAt = try Self.number(try reader.readInteger().int64)
            case UInt8(ascii: "l"): length = try Self.number(try reader.readInteger().int64)
            case UInt8(ascii: "B"): isTooLong = try reader.readInteger().int64 != 0
            default: try reader.skipValue()
            }
        }
        try reader.end()
    }

    /// Joins it with the message, whose length must be the one that it tells.
    func message(_ data: Secret?) throws(FormatError) -> SessionMessage {
        guard let account, let hash, (1...SessionLimits.messageHashBytes).contains(hash.count),
            let id = AccountID(hexDigits: account),
            let text = hash.reveal({ String(validating: $0, as: UTF8.self) })
        else { throw FormatError(.wrongType) }
        if let data, let length, length != Int64(data.count) { throw FormatError(.wrongType) }
        return SessionMessage(
            account: id, hash: text, namespace: namespace, sentAt: sentAt.map { UnixTime(milliseconds: $0) },
            expiresAt: expiresAt.map { UnixTime(milliseconds: $0) }, data: data,
            isTooLong: isTooLong && data == nil)
    }

    private static func namespace(_ number: Int64?) throws(FormatError) -> Int16 {
        guard let number, let namespace = Int16(exactly: number) else { throw FormatError(.wrongType) }
        return namespace
    }

    /// A time or a length.
    private static func number(_ number: Int64?) throws(FormatError) -> Int64 {
        guard let number, number >= 0 else { throw FormatError(.wrongType) }
        return number
    }
}
