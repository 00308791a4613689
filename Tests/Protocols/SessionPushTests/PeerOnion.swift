import Primitives
import PushTesting
import SessionPush
import Testing
import WireFormats

/// Onion requests as they reach the push server, made by hand.
struct PeerOnion {
    let server: X25519KeyPair
    private let client: X25519KeyPair

    init() throws {
        server = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 3, count: 32)))
        client = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 5, count: 32)))
    }

    var clientKey: String { Hex.encode(client.publicKey) }

    func inner(_ head: String, _ body: String? = "{}") -> [UInt8] {
        var list = BencodeWriter()
        list.beginList()
        list.string(Array(head.utf8))
        if let body { list.string(Array(body.utf8)) }
        list.endList()
        return list.bytes
    }

    func request(
        _ plain: [UInt8], _ cipher: OnionCipher = .xchacha20, routing: String? = nil
    ) throws -> [UInt8] {
        let key = try key(cipher)
        let sealed = plain.withUnsafeBytes { bytes in
            cipher.seal(bytes, key: key, nonce: [UInt8](repeating: 1, count: cipher == .xchacha20 ? 24 : 12))
        }.reveal { Array($0) }
        let json = routing ?? #"{"ephemeral_key":"\#(clientKey)","enc_type":"\#(cipher.rawValue)"}"#
        let count = withUnsafeBytes(of: UInt32(sealed.count).littleEndian) { Array($0) }
        return count + sealed + Array(json.utf8)
    }

    /// What a reply says.
    func opened(_ reply: Secret, _ cipher: OnionCipher = .xchacha20) throws -> Secret {
        let key = try key(cipher)
        return try #require(reply.reveal { cipher.open($0, key: key) })
    }

    private func key(_ cipher: OnionCipher) throws -> Secret {
        try #require(server.publicKey.withUnsafeBytes { cipher.key(client, with: $0, isClient: true) })
    }
}
