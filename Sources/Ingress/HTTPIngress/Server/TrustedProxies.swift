import NIOHTTP1
package import PushModel

/// The proxies whose `X-Forwarded-…` fields are believed. Nobody else's are read.
package struct TrustedProxies: Sendable {
    private let blocks: [AddressBlock]

    package init(_ blocks: [AddressBlock] = []) { self.blocks = blocks }

    /// Reads addresses and blocks of the configuration.
    ///
    /// - Throws: `.proxyMalformed` with the listener's name.
    package init(_ texts: [String], of listener: ConfiguredName) throws(IngressError) {
        var blocks: [AddressBlock] = []
        for text in texts {
            guard let block = AddressBlock(text) else { throw IngressError(.proxyMalformed, [listener]) }
            blocks.append(block)
        }
        self.blocks = blocks
    }

    package func contains(_ address: IPAddress) -> Bool { blocks.contains { $0.contains(address) } }

    /// What the proxies before us say of a client.
    struct Word {
        var address: IPAddress
        /// It spoke TLS to the outermost trusted proxy.
        var isSecure = false
        /// A trusted proxy has named it in a way that cannot be read, so it counts as that proxy does.
        var isUnread = false
    }

    /// Who the client is.
    ///
    /// `X-Forwarded-For` is read from its end: each trusted proxy appended whom it saw. The first untrusted
    /// address is the client; everything left of it is the client's own claim and is ignored. An element that
    /// names no address (``ForwardedAddress``) ends the walk; an empty one is none (RFC 9110 §5.6.1).
    func client(behind socket: IPAddress, _ fields: HTTPHeaders) -> Word {
        guard contains(socket) else { return Word(address: socket) }
        var word = Word(address: socket)
        walk: for field in fields.reversed() where field.name.isField("x-forwarded-for") {
            for part in field.value.split(separator: ",").reversed() {
                let part = Self.trimmed(part)
                if part.isEmpty { continue }
                guard let address = ForwardedAddress.read(part) else {
                    word.isUnread = true
                    break walk
                }
                word.address = address
                if !contains(address) { break walk }
            }
        }
        let scheme = fields.last { $0.name.isField("x-forwarded-proto") }?.value
        let last = scheme?.split(separator: ",").last.map { Self.trimmed($0).lowercased() }
        word.isSecure = last == "https"
        return word
    }

    private static func trimmed(_ part: Substring) -> Substring {
        var part = part
        while part.first == " " || part.first == "\t" { part.removeFirst() }
        while part.last == " " || part.last == "\t" { part.removeLast() }
        return part
    }
}
