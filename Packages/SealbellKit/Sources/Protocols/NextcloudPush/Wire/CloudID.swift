package import PushModel
import WireFormats

/// `<user id>@<server>` (§5.3): the server is a host, maybe with a port and a path, maybe with its scheme.
///
/// It names a person, so it is kept as a secret; the server's part alone becomes a URL.
package struct CloudID: Sendable {
    /// As the instance writes it in an identifier: without `https://`, and without slashes at its end.
    package let text: Secret
    /// What stands before the last `@`: a user id may have some itself.
    package let userID: Secret
    /// ``folded(_:)``, without scheme and without slashes at its end.
    package let server: String
    /// An instance that is reached by plain http can prove nothing.
    package let isPlain: Bool

    /// `nil` for a text that names no user at a server.
    package init?(_ text: Secret) {
        guard (3...NextcloudLimits.cloudIDBytes).contains(text.count) else { return nil }
        let parts = text.reveal { bytes -> (user: Secret, server: String)? in
            guard let at = bytes.lastIndex(of: 0x40), at > 0, UTF8Check.holds(bytes) else { return nil }
            return (Secret(bytes[..<at]), String(decoding: bytes[(at + 1)...], as: UTF8.self))
        }
        guard let parts, let (server, isPlain) = Self.server(parts.server) else { return nil }
        self.text = parts.user.reveal { Secret(Array($0) + [0x40] + Array(server.utf8)) }
        userID = parts.user
        self.server = Self.folded(server)
        self.isPlain = isPlain
    }

    /// Host, port and path; `nil` for anything else, such as a query or a control character.
    private static func server(_ text: String) -> (String, isPlain: Bool)? {
        var rest = text[...]
        var isPlain = false
        for (scheme, plain) in [("https://", false), ("http://", true)]
        where rest.prefix(scheme.utf8.count).lowercased() == scheme {
            rest = rest.dropFirst(scheme.utf8.count)
            isPlain = plain
            break
        }
        while rest.last == "/" { rest.removeLast() }
        let host = rest.prefix { $0 != "/" }
        guard !host.isEmpty, !rest.contains("//"), rest.utf8.allSatisfy(isURLByte),
            host.utf8.allSatisfy(isHostByte)
        else {
            return nil
        }
        return (String(rest), isPlain)
    }

    /// With the host in lower case, without the dot at its end and without the port of https; a path keeps
    /// its letters.
    static func folded(_ server: String) -> String {
        let authority = server.prefix { $0 != "/" }
        var host = authority.lowercased()[...]
        var port = ""
        if host.last != "]", let colon = host.lastIndex(of: ":") {
            let digits = host[host.index(after: colon)...]
            let number = digits.drop { $0 == "0" }
            port = String(number.isEmpty ? digits.prefix(1) : number)
            host = host[..<colon]
        }
        if host.count > 1, host.last == "." { host.removeLast() }
        let isUsual = port.isEmpty || port == "443"
        return "\(host)\(isUsual ? "" : ":\(port)")\(server[authority.endIndex...])"
    }

    /// Whose share a proof uses: one name of a user, however the cloud id is spelled. A server looks its
    /// users up without regard to case, and one path of it may be written in many ways, so it is left out.
    var payer: Secret {
        userID.reveal { user in
            let letters = user.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
            return Secret(letters + [0x40] + server.prefix { $0 != "/" }.utf8)
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"),
            UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }

    private static func isURLByte(_ byte: UInt8) -> Bool {
        isHostByte(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "~")
    }

    /// Where the instance says whose key is whose. The user id alone is asked for: with the whole cloud id an
    /// instance answers 404.
    package var proofURL: String {
        var url = "https://\(server)/ocs/v2.php/identityproof/key/"
        userID.reveal { bytes in
            for byte in bytes {
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                    url.unicodeScalars.append(Unicode.Scalar(byte))
                default:
                    url += "%" + Hex.encode([byte]).uppercased()
                }
            }
        }
        return url + "?format=json"
    }
}
