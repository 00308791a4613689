import Primitives
package import PushModel
package import Secp256k1Keys

/// A client's permission for a server to push for it: a signature over both keys and the access token.
package enum Grant {
    /// Keccak-256 of client (33 bytes) ‖ server (33 bytes) ‖ token, as the text that is sent.
    package static func digest(client: PublicPoint, server: PublicPoint, accessToken: Secret) -> [UInt8] {
        client.compressed.withUnsafeBytes { client in
            server.compressed.withUnsafeBytes { server in
                accessToken.reveal { Keccak.hash256(joining: [client, server, $0]) }
            }
        }
    }

    /// - Returns: 65 bytes.
    package static func sign(by client: Secp256k1KeyPair, server: PublicPoint, accessToken: Secret) -> Secret
    {
        Secret(
            client.signRecoverable(digest(client: client.point, server: server, accessToken: accessToken)))
    }

    /// Whether the client signed for this server and this token.
    package static func holds(
        _ grant: Secret, client: PublicPoint, server: PublicPoint, accessToken: Secret
    ) -> Bool {
        let digest = digest(client: client, server: server, accessToken: accessToken)
        return grant.reveal { PublicPoint.recovered(from: $0, of: digest) } == client
    }
}

/// Access tokens: UUIDs in every spelling that deployed servers read.
package enum AccessToken {
    /// With or without hyphens, in braces, behind `urn:uuid:`, digits of either case.
    package static func isUUID(_ text: Secret) -> Bool {
        text.reveal { text in
            switch text.count {
            case 32: return text.allSatisfy(isDigit)
            case 36: return isHyphenated(text[...])
            case 38:
                return text[0] == UInt8(ascii: "{") && text[37] == UInt8(ascii: "}")
                    && isHyphenated(text[1..<37])
            case StatusLimits.tokenTextBytes:
                let prefix = text[..<9].map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
                return prefix.elementsEqual("urn:uuid:".utf8) && isHyphenated(text[9...])
            default: return false
            }
        }
    }

    private static func isHyphenated(_ text: Slice<UnsafeRawBufferPointer>) -> Bool {
        text.enumerated().allSatisfy { index, byte in
            [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isDigit(byte)
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }
}
