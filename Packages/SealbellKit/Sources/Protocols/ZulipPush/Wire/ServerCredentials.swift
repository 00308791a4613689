import Primitives
package import PushModel
package import WireFormats

/// What a server shows: its id and the hash of its key. The key itself is dropped as soon as it is hashed.
package final class ServerCredentials: Sendable {
    /// `nil` when the user part is no UUID: then no server has it.
    package let id: UUIDText?
    /// SHA-256 of the key, 32 bytes. The key has 64 random characters, so that no slow hash is needed.
    package let keyHash: Secret
    /// Of the field that showed them, by whoever remembers it.
    let digest: Digest16?

    init(id: UUIDText?, keyHash: Secret, digest: Digest16?) {
        self.id = id
        self.keyHash = keyHash
        self.digest = digest
    }

    /// Reads an `Authorization` field (RFC 7617): `Basic base64(zulip_org_id:zulip_org_key)`. Whatever is not
    /// two words is malformed before its scheme is looked at, as deployed.
    ///
    /// - Throws: `.missingAuthorization`, `.otherAuthorizationScheme`, `.malformedAuthorization`,
    ///   `.userInsteadOfServer` (§5.1).
    package convenience init(authorization: String?, digest: Digest16? = nil) throws(ZulipError) {
        var (decoded, colon) = try Self.parts(authorization)
        defer { decoded.withUnsafeMutableBytes { wipe($0) } }
        let id = decoded.withUnsafeBytes { UUIDText(UnsafeRawBufferPointer(rebasing: $0[..<colon])) }
        let hash = decoded.withUnsafeBytes {
            SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[(colon + 1)...]))
        }
        self.init(id: id, keyHash: Secret(hash), digest: digest)
    }

    /// Reads a field that is not remembered.
    package static func read(_ authorization: String?) throws(ZulipError) -> ServerCredentials {
        try ServerCredentials(authorization: authorization)
    }

    /// Checks the field's form alone: no key is hashed.
    ///
    /// - Throws: as ``init(authorization:)``.
    static func checkForm(_ authorization: String?) throws(ZulipError) {
        var (decoded, _) = try parts(authorization)
        decoded.withUnsafeMutableBytes { wipe($0) }
    }

    /// - Returns: id, colon and key, which the caller wipes, and where the colon is.
    private static func parts(_ authorization: String?) throws(ZulipError) -> (decoded: [UInt8], colon: Int) {
        guard var authorization else { throw ZulipError(.missingAuthorization) }
        // Each request pays for this, so its bytes are looked at where they stand. The standard library's
        // accessor rethrows untyped, so the typed error travels inside a result.
        let read = authorization.withUTF8 { text in
            Result { () throws(ZulipError) in try parts(UnsafeRawBufferPointer(text)) }
        }
        return try read.get()
    }

    private static func parts(
        _ field: UnsafeRawBufferPointer
    ) throws(ZulipError) -> (decoded: [UInt8], colon: Int) {
        var rest = field[...]
        guard let scheme = word(&rest), let shown = word(&rest), word(&rest) == nil else {
            throw ZulipError(.malformedAuthorization)
        }
        guard scheme.count == 5, scheme.elementsEqual("basic".utf8, by: { $0 | 0x20 == $1 }) else {
            throw ZulipError(.otherAuthorizationScheme)
        }
        var decoded: [UInt8]
        do { decoded = try Base64.decode(UnsafeRawBufferPointer(rebasing: shown)) } catch {
            throw ZulipError(.malformedAuthorization)
        }
        guard let colon = decoded.firstIndex(of: 0x3A), !decoded[..<colon].contains(0x40) else {
            let code: ZulipError.Code =
                decoded.contains(0x3A) ? .userInsteadOfServer : .malformedAuthorization
            decoded.withUnsafeMutableBytes { wipe($0) }
            throw ZulipError(code)
        }
        return (decoded, colon)
    }

    /// The next word, behind whose end `rest` begins then; `nil` when there is none.
    private static func word(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer>? {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
        let word = rest.prefix { $0 != 0x20 && $0 != 0x09 }
        rest = rest[word.endIndex...]
        return word.isEmpty ? nil : word
    }

    /// Hash of a key as it is stored.
    package static func hash(key: [UInt8]) -> Secret { Secret(SHA256.hash(key)) }
}
