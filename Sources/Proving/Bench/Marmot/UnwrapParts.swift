import libsecp256k1
import MarmotPush
import Primitives
import PushModel
import Secp256k1Keys
import WireFormats

/// The arithmetic of one unwrap, taken apart: the same bytes through each primitive alone, into memory that
/// is there already.
final class UnwrapParts {
    /// One layer that is decrypted: the wrap's content, and the seal's.
    private struct Layer {
        let payload: Secret
        let conversation: Secret
        let nonce: [UInt8]
        let keys: Secret
        /// Nonce and ciphertext, which the authenticator covers.
        let signed: Secret
        var author: secp256k1_pubkey
        var verifier: secp256k1_xonly_pubkey
        let signature: [UInt8]
        let id: [UInt8]
    }

    private let curve: BareCurve
    private var layers: [Layer] = []
    /// The texts that are parsed: wrap, seal and rumor.
    private let texts: [Secret]
    /// The texts that the three ids are digests of.
    private let hashed: [Secret]
    private let authors: [[UInt8]]
    private let room: UnsafeMutableRawBufferPointer

    /// - Parameter wrap: one with a seal.
    init(_ wrap: MarmotMaterial.Wrap, _ server: Secp256k1KeyPair, _ curve: BareCurve) throws {
        self.curve = curve
        room = .allocate(byteCount: wrap.text.count, alignment: 64)
        var (outer, texts, hashed, authors) = (wrap.event, [wrap.text], [Secret](), [[UInt8]]())
        for _ in 0..<2 {
            let payload = outer.content
            let conversation = NIP44.conversationKey(server, outer.pubkey)
            let bytes = try payload.reveal { try Base64.decode($0) }
            var author = curve.lift(outer.pubkey.bytes)
            let nonce = Array(bytes[1..<33])
            layers.append(
                Layer(
                    payload: payload, conversation: conversation, nonce: nonce,
                    keys: NIP44.messageKeys(conversation, nonce),
                    signed: Secret(bytes[1..<bytes.count - 32]), author: author,
                    verifier: curve.verifier(&author), signature: outer.signature ?? [], id: outer.id))
            hashed.append(Self.idText(outer))
            authors.append(outer.pubkey.bytes)
            let text = try NIP44.decrypt(payload, key: conversation)
            texts.append(text)
            outer = try NostrEvent.parse(text, .rumor)
        }
        hashed.append(Self.idText(outer))
        authors.append(outer.pubkey.bytes)
        (self.texts, self.hashed, self.authors) = (texts, hashed, authors)
    }

    deinit { room.deallocate() }

    /// What the id is the digest of. Our contents are base64, which needs no escape.
    private static func idText(_ event: NostrEvent) -> Secret {
        var writer = JSONWriter(reserving: event.content.count + 256)
        writer.beginArray()
        writer.int(0)
        writer.string(event.pubkey.hex)
        writer.int(event.createdAt)
        writer.int(Int64(event.kind))
        writer.beginArray()
        for tag in event.tags {
            writer.beginArray()
            for value in tag { writer.string(value) }
            writer.endArray()
        }
        writer.endArray()
        event.content.reveal { writer.string(utf8: $0) }
        writer.endArray()
        return writer.takeSecret()
    }

    /// Every primitive, in the order of an unwrap and as often as an unwrap does it: JSON, lifts and SHA-256
    /// for three events, the others for two layers.
    var primitives: [Contender] {
        [
            primitive("json") { for text in $0.texts { $0.read(text) } },
            primitive("lift") { for author in $0.authors { _ = $0.curve.lift(author) } },
            primitive("sha256") { for text in $0.hashed { text.reveal { _ = SHA256.hash($0) } } },
            primitive("schnorr") { for at in $0.layers.indices { $0.verify(at) } },
            primitive("base64") { for layer in $0.layers { $0.decode(layer.payload) } },
            primitive("ecdh") { for at in $0.layers.indices { $0.multiply(at) } },
            primitive("hkdf") {
                for layer in $0.layers {
                    _ = HKDF256.extract(salt: Self.salt, input: layer.conversation)
                    _ = NIP44.messageKeys(layer.conversation, layer.nonce)
                }
            },
            primitive("hmac") { for layer in $0.layers { $0.authenticate(layer) } },
            primitive("chacha20") { for layer in $0.layers { $0.decipher(layer) } }
        ]
    }

    private func primitive(_ name: String, _ work: @escaping (UnwrapParts) -> Void) -> Contender {
        Contender(name, times: nil) { _ in work(self) }
    }

    private func read(_ text: Secret) {
        text.reveal { raw in
            var reader = JSONReader(raw)
            let isRead = (try? reader.skipValue()) != nil  // Told below.
            precondition(isRead, "we wrote it")
        }
    }

    private func verify(_ at: Int) {
        let isSigned = curve.verify(layers[at].signature, layers[at].id, &layers[at].verifier)
        precondition(isSigned, "we signed it")
    }

    private func multiply(_ at: Int) {
        curve.multiply(&layers[at].author, into: room.baseAddress!.assumingMemoryBound(to: UInt8.self))
    }

    private static let salt = Array("nip44-v2".utf8)

    private func decode(_ payload: Secret) {
        payload.reveal { text in
            let count = Base64.decodedCount(text) ?? 0
            let out = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
            let isDecoded = (try? Base64.decode(text, .standard, into: out)) != nil  // Told below.
            precondition(isDecoded, "we encoded it")
        }
    }

    private func authenticate(_ layer: Layer) {
        layer.keys.reveal { keys in
            layer.signed.reveal { signed in
                HMAC256.code(
                    key: UnsafeRawBufferPointer(rebasing: keys[44..<76]), [signed],
                    into: UnsafeMutableRawBufferPointer(rebasing: room[..<32]))
            }
        }
    }

    private func decipher(_ layer: Layer) {
        layer.keys.reveal { keys in
            layer.signed.reveal { signed in
                ChaCha20.apply(
                    UnsafeRawBufferPointer(rebasing: signed[32...]),
                    key: UnsafeRawBufferPointer(rebasing: keys[..<32]),
                    nonce: UnsafeRawBufferPointer(rebasing: keys[32..<44]),
                    into: UnsafeMutableRawBufferPointer(rebasing: room[..<(signed.count - 32)]))
            }
        }
    }
}
