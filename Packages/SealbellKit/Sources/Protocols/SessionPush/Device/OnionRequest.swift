package import Primitives
package import PushModel
import WireFormats

/// A push server that is reached by onion requests.
package struct OnionServer: Sendable {
    package enum Scheme: String, Sendable, Hashable { case https, http }

    /// A name or an address.
    package let host: String
    package let port: UInt16
    package let scheme: Scheme
    /// The server's onion key, X25519, 32 bytes.
    package let key: Secret

    /// - Throws: `.malformedKey` unless the key has 32 bytes; `.malformedServer` for a host that is none.
    package init(
        host: String, port: UInt16 = 443, scheme: Scheme = .https, key: Secret
    ) throws(SessionError) {
        guard key.count == 32 else { throw SessionError(.malformedKey) }
        guard (1...SessionLimits.hostBytes).contains(host.utf8.count), port > 0,
            host.utf8.allSatisfy({ (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "/") })
        else { throw SessionError(.malformedServer) }
        (self.host, self.port, self.scheme, self.key) = (host, port, scheme, key)
    }

    /// Where an onion request arrives.
    package static let onionPath = "/oxen/v4/lsrpc"

    /// Seals a call so that only the server reads it, and wraps it for each node of a path, so that none of
    /// them knows both ends.
    ///
    /// - Parameter path: the nodes, the one that is asked first; none: the request goes to the server itself,
    ///   which then learns the phone's address.
    /// - Throws: `.malformedKey` for a key of a node or the server that nothing can be sealed to;
    ///   `.pathTooLong` beyond ``SessionLimits/pathNodes``.
    package func request(
        _ call: SessionCall, through path: [OnionNode] = [], _ cipher: OnionCipher = .xchacha20,
        using generator: inout some RandomNumberGenerator
    ) throws(SessionError) -> OnionRequest {
        try request(
            OnionRequest.inner(call), through: path, cipher,
            chances: (0...path.count).map { _ in OnionChance(cipher, &generator) })
    }

    /// - Parameter chances: of the server's layer first, then of the last node's, and so on.
    package func request(
        _ plain: Secret, through path: [OnionNode], _ cipher: OnionCipher, chances: [OnionChance]
    ) throws(SessionError) -> OnionRequest {
        guard path.count <= SessionLimits.pathNodes else { throw SessionError(.pathTooLong) }
        let layer = OnionLayer(plain, to: key, cipher, chances[0])
        guard let replyKey = layer?.key, var outer = layer else { throw SessionError(.malformedKey) }
        for (place, node) in path.enumerated().reversed() {
            let isLast = place == path.count - 1
            let routing = outer.routing { writer in
                if isLast {
                    writer.member("host", host)
                    writer.member("target", Self.onionPath)
                    writer.member("method", "POST")
                    writer.member("protocol", scheme.rawValue)
                    writer.member("port", Int64(port))
                } else {
                    writer.member("destination", escaped: path[place + 1].ed25519.hexDigits)
                }
            }
            guard
                let layer = OnionLayer(
                    outer.framed(routing), to: node.x25519, cipher, chances[path.count - place])
            else { throw SessionError(.malformedKey) }
            outer = layer
        }
        return OnionRequest(
            body: outer.framed(outer.routing { _ in }), isForNode: !path.isEmpty, cipher: cipher,
            replyKey: replyKey)
    }
}

/// A sealed request, and what opens its reply.
package struct OnionRequest: Sendable {
    /// To be sent by POST.
    package let body: Secret
    private let isForNode: Bool
    private let cipher: OnionCipher
    private let replyKey: Secret

    init(body: Secret, isForNode: Bool, cipher: OnionCipher, replyKey: Secret) {
        (self.body, self.isForNode, self.cipher, self.replyKey) = (body, isForNode, cipher, replyKey)
    }

    /// At the first node, which is reached by https at its address; without nodes, at the server.
    package var path: String { isForNode ? "/onion_req/v2" : OnionServer.onionPath }

    /// Opens what came back.
    ///
    /// - Parameter status: of HTTP; `nil`: nobody answered.
    /// - Returns: the server's own answer.
    /// - Throws: `.pathFailed` for another status than 200, which somebody on the way, or a server that could
    ///   not read the request, has given; `.doesNotOpen`; `.malformedAnswer`. For
    ///   ``SessionRoutine/settle(_:_:now:using:)`` each of them is ``SessionAnswer/none``.
    package func answer(status: Int?, body: Secret) throws(SessionError) -> SessionAnswer {
        guard status == 200 else { throw SessionError(.pathFailed) }
        guard body.count <= SessionLimits.answerBytes else { throw SessionError(.malformedAnswer) }
        guard let plain = body.reveal({ cipher.open($0, key: replyKey) }) else {
            throw SessionError(.doesNotOpen)
        }
        do throws(FormatError) {
            return try plain.reveal { (plain) throws(FormatError) in try Self.read(plain) }
        } catch { throw SessionError(.malformedAnswer) }
    }

    private static func read(_ plain: UnsafeRawBufferPointer) throws(FormatError) -> SessionAnswer {
        var reader = BencodeReader(plain)
        try reader.beginList()
        guard try reader.nextElement() else { throw FormatError(.malformedBencode) }
        let head = try JSONValue.parse(try reader.readString(), limitBytes: SessionLimits.answerBytes)
        guard let code = head["code"]?.int64, (100...599).contains(code), try reader.nextElement() else {
            throw FormatError(.wrongType)
        }
        let body = Secret(copying: try reader.readString())
        guard try !reader.nextElement() else { throw FormatError(.malformedBencode) }
        try reader.end()
        return SessionAnswer(status: Int(code), body: body)
    }

    /// What the server reads (§7.2): head and body.
    static func inner(_ call: SessionCall) -> Secret {
        var head = JSONWriter()
        head.beginObject()
        head.member("method", "POST")
        head.member("endpoint", call.endpoint.rawValue)
        head.beginObject("headers")
        head.member("Content-Type", "application/json")
        head.endObject()
        head.endObject()
        var list = BencodeWriter(reserving: call.body.count + 256)
        list.beginList()
        list.string(head.bytes)
        call.body.reveal { list.string($0) }
        list.endList()
        return list.takeSecret()
    }
}

/// What is drawn for one layer.
package struct OnionChance: Sendable {
    let pair: X25519KeyPair
    let nonce: [UInt8]

    package init(pair: X25519KeyPair, nonce: [UInt8]) { (self.pair, self.nonce) = (pair, nonce) }

    init(_ cipher: OnionCipher, _ generator: inout some RandomNumberGenerator) {
        let scalar = Secret((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
        do { pair = try X25519KeyPair(privateKey: scalar) } catch {
            preconditionFailure("32 bytes always form a private key")
        }
        nonce = (0..<cipher.nonceBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}

/// One layer: sealed to one key, with a pair of its own.
private struct OnionLayer {
    let key: Secret
    private let sealed: Secret
    private let ephemeral: Secret
    private let cipher: OnionCipher

    /// - Returns: `nil` for a package key of no use.
    init?(_ plain: Secret, to publicKey: Secret, _ cipher: OnionCipher, _ chance: OnionChance) {
        guard let key = publicKey.reveal({ cipher.key(chance.pair, with: $0, isClient: true) }) else {
            return nil
        }
        self.key = key
        self.cipher = cipher
        sealed = plain.reveal { cipher.seal($0, key: key, nonce: chance.nonce) }
        ephemeral = Secret(chance.pair.publicKey)
    }

    /// The JSON that tells how this layer is opened, after what else is to be told.
    func routing(_ fill: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        fill(&writer)
        writer.member("ephemeral_key", escaped: ephemeral.hexDigits)
        writer.member("enc_type", cipher.rawValue)
        writer.endObject()
        return writer.bytes
    }

    /// N (little-endian) ‖ ciphertext ‖ JSON.
    func framed(_ routing: [UInt8]) -> Secret {
        Secret(count: 4 + sealed.count + routing.count) { out in
            out.storeBytes(of: UInt32(sealed.count).littleEndian, as: UInt32.self)
            sealed.reveal { UnsafeMutableRawBufferPointer(rebasing: out[4...]).copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: out[(4 + sealed.count)...]).copyBytes(from: routing)
        }
    }
}
