import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WireFormats

/// NIP-59 with and without a seal: who is believed, and what a relay sees.
@Suite("Marmot wraps")
struct WrapTests {
    private let world = MarmotSupport.world()

    private func rumor(_ author: XOnlyKey, kind: Int = 446) -> NostrEvent {
        .rumor(
            kind: kind, createdAt: MarmotSupport.now, tags: TokenFormat.pushV1.triggerTags,
            content: Secret("content".utf8), author: author)
    }

    private func code(_ wrap: NostrEvent, _ pair: Secp256k1KeyPair) -> MarmotError.Code? {
        MarmotSupport.code { () throws(MarmotError) in _ = try GiftWrap.unwrap(wrap, with: pair) }
    }

    @Test("A rumor goes through seal and wrap, and the relay sees a fresh key and a time of the past")
    func sealed() throws {
        let (server, author) = (Secp256k1KeyPair.generate(world), Secp256k1KeyPair.generate(world))
        let rumor = rumor(author.publicKey)
        var seen: Set<XOnlyKey> = [server.publicKey, author.publicKey]
        for _ in 0..<8 {
            let wrap = try GiftWrap.wrap(sealing: rumor, by: author, to: server.publicKey, world: world)
            let opened = try GiftWrap.unwrap(wrap, with: server)
            #expect(opened.path == .sealed && opened.event.id == rumor.id)
            #expect(opened.event.signature == nil && opened.event.content == rumor.content)
            #expect(wrap.tags == [["p", server.publicKey.hex]] && wrap.isSigned)
            #expect(seen.insert(wrap.pubkey).inserted, "a key of its own for each wrap")
            #expect((MarmotSupport.now - 172_800...MarmotSupport.now).contains(wrap.createdAt))
        }
    }

    @Test("Layers are dated over the whole of two days and never ahead")
    func backdating() {
        let times = (0..<2_000).map { _ in GiftWrap.Layer.random(world).createdAt }
        let span = MarmotSupport.now - 172_800...MarmotSupport.now
        #expect(times.allSatisfy { span.contains($0) })
        // Of 2,000 even draws one of 100 equal parts stays empty once in 5 million worlds; this one is fixed.
        #expect(Set(times.map { ($0 - span.lowerBound) / 1_729 }).count >= 99)
    }

    @Test("A wrap is for the key that its p tag names, among old and new")
    func addressees() throws {
        let (old, new) = (Secp256k1KeyPair.generate(world), Secp256k1KeyPair.generate(world))
        let author = Secp256k1KeyPair.generate(world)
        let wrap = try GiftWrap.wrap(
            sealing: rumor(author.publicKey), by: author, to: old.publicKey, world: world)
        #expect(try GiftWrap.addressee(of: wrap, among: [new.publicKey, old.publicKey]) == old.publicKey)
        #expect(code(wrap, new) == .wrongRecipient && code(wrap, old) == nil)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in
                _ = try GiftWrap.addressee(of: wrap, among: [])
            } == .wrongRecipient)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in _ = try GiftWrap.open(wrap, with: new) }
                == .doesNotOpen)
    }

    @Test("Nobody can speak for another author, in the seal or below it")
    func authors() throws {
        let server = Secp256k1KeyPair.generate(world)
        let (alice, mallory) = (Secp256k1KeyPair.generate(world), Secp256k1KeyPair.generate(world))
        #expect(
            MarmotSupport.code { () throws(MarmotError) in
                _ = try GiftWrap.seal(
                    rumor(alice.publicKey), by: mallory, to: server.publicKey, .random(world))
            } == .authorMismatch)
        // Mallory's own seal around a rumor that names Alice.
        let content = try NIP44.encrypt(
            rumor(alice.publicKey).serialized(), key: NIP44.conversationKey(mallory, server.publicKey),
            nonce: world.randomBytes(32))
        let seal = NostrEvent.signed(
            kind: NostrKind.seal, createdAt: 1, content: content, by: mallory,
            auxiliary: world.randomBytes(32))
        let wrap = try GiftWrap.wrap(seal, by: mallory, to: server.publicKey, .random(world))
        #expect(code(wrap, server) == .authorMismatch)
        // A direct trigger without a signature, and one of another kind.
        for (inner, expected) in [
            (rumor(alice.publicKey), MarmotError.Code.badSignature),
            (rumor(alice.publicKey, kind: 447), .wrongKind)
        ] {
            let wrap = try GiftWrap.wrap(inner, by: mallory, to: server.publicKey, .random(world))
            #expect(code(wrap, server) == expected)
        }
        // A seal in a seal is no trigger.
        let nested = try GiftWrap.seal(seal, by: mallory, to: server.publicKey, .random(world))
        let twice = try GiftWrap.wrap(nested, by: mallory, to: server.publicKey, .random(world))
        #expect(code(twice, server) == .wrongKind)
    }

    /// A wrap around a seal around this text.
    private func wrap(
        text: String, by author: Secp256k1KeyPair, to server: Secp256k1KeyPair
    ) throws -> NostrEvent {
        let content = try NIP44.encrypt(
            Secret(text.utf8), key: NIP44.conversationKey(author, server.publicKey),
            nonce: world.randomBytes(32))
        let seal = NostrEvent.signed(
            kind: NostrKind.seal, createdAt: 1, content: content, by: author,
            auxiliary: world.randomBytes(32))
        return try GiftWrap.wrap(seal, by: .generate(world), to: server.publicKey, .random(world))
    }

    @Test("Inside a seal what stands for no id and no signature is none, and hex may have capitals")
    func loose() throws {
        let (server, author) = (Secp256k1KeyPair.generate(world), Secp256k1KeyPair.generate(world))
        for format in [TokenFormat.seed, .mip05Long, .pushV1] {
            let rumor = NostrEvent.rumor(
                kind: 446, createdAt: MarmotSupport.now, tags: format.triggerTags,
                content: Secret("content".utf8), author: author.publicKey)
            let plain = rumor.serialized().reveal { String(decoding: $0, as: UTF8.self) }
            let (id, key) = (Hex.encode(rumor.id), author.publicKey.hex)
            let zeros = String(repeating: "0", count: 64)
            func with(_ signature: String) -> String { plain.dropLast() + ",\"sig\":\(signature)}" }
            let loose = [
                with("null"), with("\"\""), with("\"\(zeros)\(zeros)\""),
                plain.replacing("\"\(id)\"", with: "null"), plain.replacing(id, with: ""),
                plain.replacing(id, with: zeros), plain.replacing(id, with: id.uppercased()),
                plain.replacing(key, with: key.uppercased())
            ]
            for text in loose {
                let wrap = try wrap(text: text, by: author, to: server)
                if format == .pushV1 {
                    #expect(code(wrap, server) == .malformedInside)
                } else {
                    #expect(try GiftWrap.unwrap(wrap, with: server).event.id == rumor.id)
                }
            }
            // What is there is held against what it should be, as ever.
            let wrong = [
                (plain.replacing(id, with: String(id.reversed())), MarmotError.Code.badRumorID),
                (with("\"\(zeros)\(String(repeating: "1", count: 64))\""), .badSignature),
                (with("1"), .malformedInside), (with("\"00\""), .malformedInside),
                (with("null,\"sig\":null"), .malformedInside),
                (plain.replacing(key, with: ""), .malformedInside),
                (plain.replacing("\"\(key)\"", with: "null"), .malformedInside)
            ]
            for (text, expected) in wrong {
                #expect(code(try wrap(text: text, by: author, to: server), server) == expected, "\(text)")
            }
        }
    }

    @Test("More than the short prefix can tell needs the long one, and is read with it")
    func long() throws {
        let (server, author) = (Secp256k1KeyPair.generate(world), Secp256k1KeyPair.generate(world))
        let big = NostrEvent.rumor(
            kind: 446, createdAt: 1, content: Secret([UInt8](repeating: 0x61, count: 66_000)),
            author: author.publicKey)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in
                _ = try GiftWrap.wrap(sealing: big, by: author, to: server.publicKey, world: world)
            } == .tooMuchContent)
        let seal = try GiftWrap.seal(big, by: author, to: server.publicKey, .random(world), prefix: .long)
        let wrap = try GiftWrap.wrap(
            seal, by: .generate(world), to: server.publicKey, .random(world), prefix: .long)
        #expect(try GiftWrap.unwrap(wrap, with: server).event.content == big.content)
    }
}
