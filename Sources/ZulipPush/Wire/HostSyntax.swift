package import PushModel
import WireFormats

/// A host as a server signs up with it: a DNS name or IPv4 address, with at most a port; lower case (§5.2).
package struct ZulipHostname: Sendable, Hashable {
    /// With the port, if any.
    package let text: String
    /// Without the port.
    package let name: String

    /// `nil` for anything with a path, user, query, white space, an empty label, or more than 128 characters.
    package init?(_ bytes: [UInt8]) {
        guard !bytes.isEmpty, bytes.count <= ZulipLimits.hostnameBytes else { return nil }
        let parts = bytes.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 {
            guard (1...5).contains(parts[1].count), parts[1].allSatisfy({ (0x30...0x39).contains($0) }),
                let port = Int(String(decoding: parts[1], as: UTF8.self)), (1...65_535).contains(port)
            else { return nil }
        }
        let labels = parts[0].split(separator: 0x2E, omittingEmptySubsequences: false)
        guard labels.allSatisfy(Self.isLabel) else { return nil }
        text = String(decoding: bytes, as: UTF8.self).lowercased()
        name = String(decoding: parts[0], as: UTF8.self).lowercased()
    }

    /// 1 to 63 letters, digits and inner hyphens (RFC 1123 §2.1).
    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        guard (1...63).contains(label.count), label.first != 0x2D, label.last != 0x2D else { return false }
        return label.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D: true
            default: false
            }
        }
    }
}

/// A contact address: `local@domain` of RFC 5321 without quoted forms (§5.2).
package struct ContactMail: Sendable {
    package let text: Secret
    package let domain: String

    /// `nil` when the syntax is wrong.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count <= ZulipLimits.mailBytes, let at = bytes.lastIndex(of: 0x40),
            (1...64).contains(at), bytes[..<at].allSatisfy(Self.isLocal),
            bytes[0] != 0x2E, bytes[at - 1] != 0x2E, !bytes[..<at].contains([0x2E, 0x2E]),
            let domain = ZulipHostname(Array(bytes[(at + 1)...])),
            domain.name == domain.text, domain.name.utf8.contains(0x2E)
        else { return nil }
        text = Secret(bytes)
        self.domain = domain.name
    }

    /// The one domain that deployed relays refuse as a placeholder.
    package var isReserved: Bool { domain == "example.com" }

    private static func isLocal(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-/=?^_`{|}~.".utf8.contains(byte)
        }
    }
}
