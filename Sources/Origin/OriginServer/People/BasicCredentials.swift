import Primitives
import PushModel
import WireFormats

/// The caller's credentials, by HTTP's Basic scheme (RFC 7617) or as a bearer token. The key is dropped as
/// soon as it is hashed.
package struct BasicCredentials: Sendable {
    package let user: String
    /// SHA-256 of what stands behind the first colon.
    let digest: Secret

    /// - Parameter field: `Authorization`; at most one of ``HTTPInbound``.
    /// - Returns: `nil` for any other form.
    package init?(_ field: String?) {
        guard let field, field.utf8.count <= 1_024, field.prefix(6).lowercased() == "basic " else {
            return nil
        }
        let text = Array(field.utf8.dropFirst(6).drop { $0 == 0x20 })
        var decoded: [UInt8]
        do throws(FormatError) { decoded = try Base64.decode(text) } catch { return nil }
        defer { decoded.withUnsafeMutableBytes { wipe($0) } }
        guard let colon = decoded.firstIndex(of: 0x3A),
            let user = String(validating: decoded[..<colon], as: UTF8.self)
        else { return nil }
        self.user = user
        digest = decoded.withUnsafeBytes {
            Secret(SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[(colon + 1)...])))
        }
    }
}
