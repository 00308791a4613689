import Primitives
public import PushModel
import WireFormats

/// A device's push key: tag byte 0x31, then a 32-byte secret-box key (§2).
public struct PushKey: Sendable {
    /// The 32 bytes behind the tag.
    let key: Secret

    static let tag: UInt8 = 0x31
    /// Of the wire form, decoded.
    public static let byteCount = 33

    /// Makes a key of exactly 32 random bytes.
    init(key: Secret) { self.key = key }

    /// Reads the wire form.
    ///
    /// - Parameter base64: canonical base64 of 33 bytes.
    /// - Throws: `.invalidPushKey` for any other length or tag.
    public init(base64: Secret) throws(ZulipError) {
        key = try base64.reveal { (text) throws(ZulipError) in
            guard Base64.decodedCount(text) == Self.byteCount else { throw ZulipError(.invalidPushKey) }
            var bytes: [UInt8]
            do { bytes = try Base64.decode(text) } catch { throw ZulipError(.invalidPushKey) }
            defer { bytes.withUnsafeMutableBytes { wipe($0) } }
            guard bytes[0] == Self.tag else { throw ZulipError(.invalidPushKey) }
            return Secret(bytes[1...])
        }
    }

    /// The wire form, 44 characters.
    public var base64: Secret {
        key.reveal { raw in
            var bytes = [Self.tag] + raw
            defer { bytes.withUnsafeMutableBytes { wipe($0) } }
            return Secret(Base64.encode(bytes))
        }
    }
}

/// The sealed content of a notification: base64 of nonce (24 bytes) ‖ secret box (§2).
package enum ContentBox {
    /// Bytes beyond the plaintext: nonce 24, authenticator 16.
    package static let overheadBytes = 40

    /// Seals a content with a nonce of 24 random bytes.
    ///
    /// - Throws: `.invalidRequest` when the nonce has another length.
    static func seal(_ plain: Secret, with key: PushKey, nonce: [UInt8]) throws(ZulipError) -> Secret {
        do {
            return Secret(Base64.encode(nonce + (try SecretBox.seal(plain, key: key.key, nonce: nonce))))
        } catch {
            throw ZulipError(.invalidRequest)
        }
    }

    /// Opens a content.
    ///
    /// - Parameter base64: `encrypted_data` as it came.
    /// - Throws: `.doesNotOpen`, whatever the reason.
    package static func open(_ base64: Secret, with key: PushKey) throws(ZulipError) -> Secret {
        try base64.reveal { (text) throws(ZulipError) in
            do {
                let bytes = try Base64.decode(text)
                guard bytes.count >= overheadBytes else { throw ZulipError(.doesNotOpen) }
                return try SecretBox.open(
                    Array(bytes[SecretBox.nonceBytes...]), key: key.key,
                    nonce: Array(bytes[..<SecretBox.nonceBytes]))
            } catch {
                throw ZulipError(.doesNotOpen)
            }
        }
    }
}
