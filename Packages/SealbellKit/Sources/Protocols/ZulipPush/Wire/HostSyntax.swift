package import PushModel
import WireFormats

/// A host as a server signs up with it: a DNS name or IPv4 address, with at most a port (§5.2). One host has
/// one spelling: lower case, the port without leading zeros, and no port where it is that of https, at which
/// the host is asked (§5.2, "Transfer").
package struct ZulipHostname: Sendable, Hashable {
    /// With the port, if it is another than 443.
    package let text: String
    /// Without the port.
    package let name: String

    /// `nil` for anything with a path, user, query, white space, an empty label, or more than 128 characters;
    /// and for an address that resolvers would read, but that is not spelled as four decimal numbers.
    package init?(_ bytes: [UInt8]) {
        guard !bytes.isEmpty, bytes.count <= ZulipLimits.hostnameBytes else { return nil }
        let parts = bytes.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
        var port = Self.httpsPort
        if parts.count == 2 {
            guard (1...5).contains(parts[1].count), parts[1].allSatisfy({ (0x30...0x39).contains($0) }),
                let given = Int(String(decoding: parts[1], as: UTF8.self)), (1...65_535).contains(given)
            else { return nil }
            port = given
        }
        let labels = parts[0].split(separator: 0x2E, omittingEmptySubsequences: false)
        guard labels.allSatisfy(Self.isLabel), !Self.isOddAddress(labels) else { return nil }
        name = String(decoding: parts[0], as: UTF8.self).lowercased()
        text = port == Self.httpsPort ? name : "\(name):\(port)"
    }

    private static let httpsPort = 443

    /// Whether the last label is a number, as only in addresses (WHATWG URL, "ends in a number"), and the
    /// whole is not in the one accepted spelling of an address: `127.1`, `0177.0.0.1` and `0x7f000001` are
    /// `127.0.0.1` too.
    private static func isOddAddress(_ labels: [ArraySlice<UInt8>]) -> Bool {
        guard let last = labels.last else { return false }
        let isNumber = last.allSatisfy { (0x30...0x39).contains($0) }
        guard isNumber || last.starts(with: "0x".utf8) || last.starts(with: "0X".utf8) else { return false }
        return labels.count != 4
            || !labels.allSatisfy { label in
                label.count <= 3 && label.allSatisfy { (0x30...0x39).contains($0) }
                    && (label.count == 1 || label.first != 0x30)
                    && label.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 255
            }
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
            !bytes[at...].contains(0x3A), let domain = ZulipHostname(Array(bytes[(at + 1)...])),
            domain.name.utf8.contains(0x2E)
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
