package import PushModel
import WireFormats

/// The text forms around a signed token: the parts of a JSON Web Token and a key file's armour.
package enum SignedToken {
    /// `base64url(header).base64url(claims)`, which is what is signed (RFC 7515 §5.1).
    package static func signingInput(header: [UInt8], claims: [UInt8]) -> [UInt8] {
        Base64.encode(header, .url) + [UInt8(ascii: ".")] + Base64.encode(claims, .url)
    }

    /// The whole token: signing input, a dot, the signature.
    package static func complete(_ input: [UInt8], signature: some Collection<UInt8>) -> Secret {
        Secret(input + [UInt8(ascii: ".")] + Base64.encode(signature, .url))
    }

    /// The DER bytes between the first pair of armour lines (RFC 7468); `nil` when there is none or its
    /// base64 is broken.
    package static func der(fromPEM text: Secret) -> Secret? {
        text.reveal { raw -> Secret? in
            let dashes = Array("-----".utf8)
            var marks: [Int] = []
            var at = 0
            while at + 5 <= raw.count, marks.count < 4 {
                if raw[at..<at + 5].elementsEqual(dashes) {
                    marks.append(at)
                    at += 5
                } else {
                    at += 1
                }
            }
            guard marks.count == 4 else { return nil }
            // Lines end as the editor liked; the rest is read strictly.
            let letters = Secret(raw[marks[1] + 5..<marks[2]].filter { $0 > 0x20 })
            return letters.reveal { letters -> Secret? in
                guard let count = Base64.decodedCount(letters), count > 0 else { return nil }
                // Broken base64 has one meaning here: no key.
                return try? Secret(count: count) { out throws(FormatError) in
                    try Base64.decode(letters, into: out)
                }
            }
        }
    }
}
