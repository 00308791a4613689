import Primitives
package import PushModel
package import WireFormats

/// What a server shows: its id and the hash of its key. The key itself is dropped as soon as it is hashed.
package struct ServerCredentials: Sendable {
    /// `nil` when the user part is no UUID: then no server has it.
    package let id: UUIDText?
    /// SHA-256 of the key, 32 bytes. The key has 64 random characters, so that no slow hash is needed.
    package let keyHash: Secret

    package init(id: UUIDText?, keyHash: Secret) {
        self.id = id
        self.keyHash = keyHash
    }

    /// Reads an `Authorization` field (RFC 7617): `Basic base64(zulip_org_id:zulip_org_key)`. Whatever is not
    /// two words is malformed before its scheme is looked at, as deployed.
    ///
    /// - Throws: `.missingAuthorization`, `.otherAuthorizationScheme`, `.malformedAuthorization`,
    ///   `.userInsteadOfServer` (§5.1).
    package init(authorization: String?) throws(ZulipError) {
        var (decoded, colon) = try Self.parts(authorization)
        defer { decoded.withUnsafeMutableBytes { wipe($0) } }
        let id = decoded.withUnsafeBytes { UUIDText(UnsafeRawBufferPointer(rebasing: $0[..<colon])) }
        let hash = decoded.withUnsafeBytes {
            SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[(colon + 1)...]))
        }
        self.init(id: id, keyHash: Secret(hash))
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
        guard let authorization else { throw ZulipError(.missingAuthorization) }
        let words = authorization.utf8.split { $0 == 0x20 || $0 == 0x09 }
        guard words.count == 2 else { throw ZulipError(.malformedAuthorization) }
        guard String(decoding: words[0], as: UTF8.self).lowercased() == "basic" else {
            throw ZulipError(.otherAuthorizationScheme)
        }
        var decoded: [UInt8]
        do { decoded = try Base64.decode(Array(words[1])) } catch {
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

    /// Hash of a key as it is stored.
    package static func hash(key: [UInt8]) -> Secret { Secret(SHA256.hash(key)) }
}
