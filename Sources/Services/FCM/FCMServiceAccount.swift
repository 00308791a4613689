import CryptoExtras
import HTTP2Client
package import PushModel
import WireFormats

/// A Firebase service account (docs/push-services.md §4.1): who asks for access tokens, for which project,
/// where.
package struct FCMServiceAccount: Sendable {
    package let project: String
    let email: String
    let keyID: String
    /// Both where the assertion is posted and its audience.
    package let tokenURL: String
    let key: _RSA.Signing.PrivateKey

    /// Key files take about 2.4 KiB.
    private static let limitBytes = 65_536
    /// What some editors put in front of UTF-8; it is no JSON.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// - Parameters:
    ///   - file: the JSON key file.
    ///   - tokenURL: instead of the file's `token_uri`.
    /// - Throws: `.malformedServiceAccount`, `.badSigningKey`.
    package init(file: Secret, tokenURL: String? = nil) throws(FCMError) {
        guard let members = Self.members(of: file), members["type"] == "service_account",
            let project = members["project_id"], let email = members["client_email"],
            let keyID = members["private_key_id"], let url = tokenURL ?? members["token_uri"],
            Self.isProject(project), !email.isEmpty, !keyID.isEmpty, url.hasPrefix("https://")
        else { throw FCMError(.malformedServiceAccount) }
        // The library's words are dropped: they may quote the key.
        guard let pem = Self.privateKey(of: file), let der = SignedToken.der(fromPEM: pem),
            let key = der.reveal({ try? _RSA.Signing.PrivateKey(derRepresentation: Array($0)) })
        else { throw FCMError(.badSigningKey) }
        self.project = project
        self.email = email
        self.keyID = keyID
        self.tokenURL = url
        self.key = key
    }

    /// A project id stands in the path of every request.
    private static func isProject(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
            }
    }

    /// The file's text members but the key.
    private static func members(of file: Secret) -> [String: String]? {
        read(file) { name, value in name == "private_key" ? nil : value.string() }
    }

    private static func privateKey(of file: Secret) -> Secret? {
        read(file) { name, value in name == "private_key" ? value.secret() : nil }?["private_key"]
    }

    private static func read<Value>(
        _ file: Secret, _ take: (String, JSONStringSlice) -> Value?
    ) -> [String: Value]? {
        guard file.count <= limitBytes else { return nil }
        return file.reveal { raw in
            do {
                let isMarked = raw.starts(with: byteOrderMark)
                var reader = JSONReader(
                    UnsafeRawBufferPointer(rebasing: raw.dropFirst(isMarked ? byteOrderMark.count : 0)))
                var found: [String: Value] = [:]
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    guard try reader.peek() == .string else {
                        try reader.skipValue()
                        continue
                    }
                    let text = name.string()
                    if let value = take(text, try reader.readString()) { found[text] = value }
                }
                try reader.end()
                return found
            } catch {
                return nil
            }
        }
    }
}
