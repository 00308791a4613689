package import Primitives
package import PushModel
import WireFormats

/// A v4 onion request as the push server receives it (§7).
package enum SessionOnion {
    /// What was inside.
    package struct Opened: Sendable {
        /// `nil`: the inner layer is malformed; the answer is ``OnionReplyKey/malformed(_:)``.
        package let request: InnerRequest?
        package let reply: OnionReplyKey
    }

    /// Opens the outer layer and reads the inner one.
    ///
    /// - Parameter body: length of the ciphertext (four bytes, little-endian) ‖ ciphertext ‖ JSON.
    /// - Throws: `.bodyTooLarge`, or `.malformedOnion` if there is no key to answer with; the answer is then
    ///   a plain 400.
    package static func open(
        _ body: UnsafeRawBufferPointer, key: X25519KeyPair
    ) throws(SessionError) -> Opened {
        guard body.count <= SessionLimits.onionBodyBytes else { throw SessionError(.bodyTooLarge) }
        guard body.count >= 4 else { throw SessionError(.malformedOnion) }
        let count = Int(UInt32(littleEndian: body.loadUnaligned(as: UInt32.self)))
        guard count <= body.count - 4, body.count - 4 - count <= SessionLimits.onionRoutingBytes else {
            throw SessionError(.malformedOnion)
        }
        let sealed = UnsafeRawBufferPointer(rebasing: body[4..<4 + count])
        let routing = UnsafeRawBufferPointer(rebasing: body[(4 + count)...])
        let layer: Layer
        do throws(FormatError) { layer = try Layer(routing) } catch { throw SessionError(.malformedOnion) }
        guard
            let shared = layer.publicKey.reveal({ layer.cipher.key(key, with: $0, isClient: false) }),
            let plain = layer.cipher.open(sealed, key: shared)
        else { throw SessionError(.malformedOnion) }
        return Opened(
            request: plain.reveal { InnerRequest($0) },
            reply: OnionReplyKey(cipher: layer.cipher, key: shared))
    }

    /// The content of the JSON after the ciphertext. The last storage server also puts its own routing there,
    /// which is ignored.
    private struct Layer {
        let cipher: OnionCipher
        let publicKey: Secret

        init(_ json: UnsafeRawBufferPointer) throws(FormatError) {
            var (key, type) = (Secret?.none, String?.none)
            var reader = JSONReader(json, depthLimit: SessionLimits.jsonDepth)
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("ephemeral_key") {
                    key = EphemeralKey.decode(try reader.readString())
                } else if name.equals("enc_type") {
                    type = try reader.readNull() ? nil : reader.readString().string()
                } else {
                    try reader.skipValue()
                }
            }
            try reader.end()
            guard let key, let cipher = OnionCipher(encType: type) else { throw FormatError(.wrongType) }
            publicKey = key
            self.cipher = cipher
        }
    }
}

/// A one-time key in any of its three spellings: hex, base64, or base32z (§7.1).
enum EphemeralKey {
    static func decode(_ text: JSONStringSlice) -> Secret? {
        if let bytes = ByteField.decode(text, count: X25519KeyPair.keyBytes) { return bytes }
        guard !text.hasEscapes, text.raw.count == base32Characters else { return nil }
        var isBase32 = true
        let bytes = Secret(count: X25519KeyPair.keyBytes) { out in
            isBase32 = ByteField.bits(text.raw, 5, into: out) { value(ofDigit: $0) }
        }
        return isBase32 ? bytes : nil
    }

    private static let base32Characters = 52
    /// Zooko's alphabet, in either case.
    private static let digits = Array("ybndrfg8ejkmcpqxot1uwisza345h769".utf8)

    private static func value(ofDigit digit: UInt8) -> UInt8? {
        let lower = (0x41...0x5A).contains(digit) ? digit | 0x20 : digit
        return digits.firstIndex(of: lower).map { UInt8($0) }
    }
}

/// A request from inside an onion request (§7.2).
package struct InnerRequest: Sendable {
    /// In capital letters.
    package let method: String
    /// Without query, percent-decoded.
    package let path: String
    package let contentType: String?
    package let body: Secret

    /// `nil` if it is malformed.
    ///
    /// - Parameter plain: a bencoded list of one or two strings: JSON, and the body.
    package init?(_ plain: UnsafeRawBufferPointer) {
        do throws(FormatError) { try self.init(reading: plain) } catch { return nil }
    }

    private init(reading plain: UnsafeRawBufferPointer) throws(FormatError) {
        var list = BencodeReader(plain, .lenient, depthLimit: 1)
        try list.beginList()
        guard try list.nextElement() else { throw FormatError(.wrongType) }
        let head = try list.readString()
        let body = try list.nextElement() ? list.readString() : UnsafeRawBufferPointer(start: nil, count: 0)
        if body.baseAddress != nil, try list.nextElement() { throw FormatError(.wrongType) }
        try list.end()
        guard head.count <= SessionLimits.innerHeadBytes else { throw FormatError(.tooLarge) }
        let read = try Head(head)
        guard let method = read.method, let endpoint = read.endpoint, endpoint.first == 0x2F,
            let path = Self.path(endpoint)
        else { throw FormatError(.wrongType) }
        self.method = method.uppercased()
        self.path = path
        contentType = read.contentType
        self.body = Secret(copying: body)
    }

    /// Up to the query, percent-decoded. `nil`: a broken escape, or not UTF-8.
    private static func path(_ endpoint: [UInt8]) -> String? {
        var (out, at) = ([UInt8](), 0)
        while at < endpoint.count, endpoint[at] != 0x3F {
            guard endpoint[at] == 0x25 else {
                out.append(endpoint[at])
                at += 1
                continue
            }
            guard at + 2 < endpoint.count, let high = Hex.value(ofDigit: endpoint[at + 1]),
                let low = Hex.value(ofDigit: endpoint[at + 2])
            else { return nil }
            out.append(high << 4 | low)
            at += 3
        }
        return String(validating: out, as: UTF8.self)
    }

    private struct Head {
        private(set) var method: String?
        private(set) var endpoint: [UInt8]?
        private(set) var contentType: String?

        init(_ json: UnsafeRawBufferPointer) throws(FormatError) {
            var reader = JSONReader(json, depthLimit: SessionLimits.jsonDepth)
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if name.equals("method") {
                    method = try reader.readString().string()
                } else if name.equals("endpoint") {
                    endpoint = try reader.readString().decoded()
                } else if name.equals("headers"), try reader.peek() == .object {
                    try readHeaders(&reader)
                } else {
                    try reader.skipValue()
                }
            }
            try reader.end()
        }

        private mutating func readHeaders(_ reader: inout JSONReader) throws(FormatError) {
            try reader.beginObject()
            while let name = try reader.nextMember() {
                if try reader.peek() == .string, name.string().lowercased() == "content-type" {
                    contentType = try reader.readString().string()
                } else {
                    try reader.skipValue()
                }
            }
        }
    }
}

/// Seals the reply to one onion request, with the request's key and a fresh nonce (§7.1).
package struct OnionReplyKey: Sendable {
    let cipher: OnionCipher
    let key: Secret

    /// - Parameter code: the status; `body` may be empty.
    /// - Returns: nonce ‖ ciphertext ‖ tag, which are sent as they are.
    package func seal(
        code: Int, contentType: String?, body: UnsafeRawBufferPointer, _ world: World
    ) -> Secret {
        seal(code: code, contentType: contentType, body: body, nonce: world.randomBytes(cipher.nonceBytes))
    }

    /// The answer to a malformed inner layer.
    package func malformed(_ world: World) -> Secret {
        withBytes(Array(SessionError(.malformedOnionRequest).sentence.utf8)) {
            seal(code: 400, contentType: "text/plain; charset=utf-8", body: $0, world)
        }
    }

    /// The same with the caller's nonce, which must never be used again.
    package func seal(
        code: Int, contentType: String?, body: UnsafeRawBufferPointer, nonce: [UInt8]
    ) -> Secret {
        var plain = BencodeWriter(reserving: body.count + 160)
        plain.beginList()
        plain.string(Self.head(code, contentType))
        plain.string(body)
        plain.endList()
        return plain.takeSecret().reveal { cipher.seal($0, key: key, nonce: nonce) }
    }

    /// With the spaces that deployed servers write. The content type is one of our own constants and needs no
    /// escape.
    private static func head(_ code: Int, _ contentType: String?) -> [UInt8] {
        let headers = contentType.map { #"{"content-type": "\#($0)"}"# } ?? "{}"
        return Array(#"{"code": \#(code), "headers": \#(headers)}"#.utf8)
    }
}
