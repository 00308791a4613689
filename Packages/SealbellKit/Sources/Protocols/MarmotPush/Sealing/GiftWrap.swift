public import PushModel
public import Secp256k1Keys

/// The gift wrap of NIP-59: a rumor (446) in a seal (13) in a wrap (1059), or, as the seed text describes it,
/// a signed event directly in the wrap.
public enum GiftWrap {
    /// How the wrap contained the trigger.
    public enum Path: Sendable, Hashable {
        /// In a seal.
        case sealed
        /// Signed, without a seal.
        case direct
    }

    /// The content of a wrap: an event of kind 446 whose author is proven.
    public struct Opened: Sendable {
        /// Kind 446, signed or proven by its seal.
        public let event: NostrEvent
        /// How it lay in the wrap.
        public let path: Path
    }

    // MARK: reading

    /// Step 1 of docs/conformance/marmot.md: what can be checked without any arithmetic.
    ///
    /// - Parameter keys: the server's; two during a change of keys.
    /// - Returns: the key that the wrap is for.
    /// - Throws: `.wrongKind`, `.tooLarge`, `.wrongRecipient`.
    package static func addressee(
        of wrap: NostrEvent, among keys: [XOnlyKey]
    ) throws(MarmotError) -> XOnlyKey {
        guard wrap.kind == NostrKind.giftWrap else { throw MarmotError(.wrongKind) }
        guard wrap.content.count <= MarmotLimits.payloadBytes else { throw MarmotError(.tooLarge) }
        guard let key = keys.first(where: { wrap.hasTag("p", $0.hex) }) else {
            throw MarmotError(.wrongRecipient)
        }
        return key
    }

    /// Step 2: id and signature of the wrap.
    ///
    /// - Throws: `.badSignature`.
    package static func verify(_ wrap: NostrEvent) throws(MarmotError) {
        guard wrap.isSigned else { throw MarmotError(.badSignature) }
    }

    /// Step 5: decrypts both layers and verifies the author. The content is read liberally, as deployed
    /// servers do, except for `push-v1`, whose specification forbids it.
    ///
    /// - Parameter wrap: one that ``verify(_:)`` accepted.
    /// - Throws: `.doesNotOpen`; `.malformedInside` for content that is not an event; `.wrongKind`;
    ///   `.badSignature` of a seal or of a 446 that has or needs one; `.authorMismatch`; `.badRumorID`.
    package static func open(_ wrap: NostrEvent, with pair: Secp256k1KeyPair) throws(MarmotError) -> Opened {
        let inner = try layer(in: wrap, with: pair)
        switch inner.kind {
        case NostrKind.trigger:
            try refuseLoose(inner, in: inner)
            guard inner.isSigned else { throw MarmotError(.badSignature) }
            return Opened(event: inner, path: .direct)
        case NostrKind.seal:
            guard inner.isSigned else { throw MarmotError(.badSignature) }
            let rumor = try layer(in: inner, with: pair)
            guard rumor.kind == NostrKind.trigger else { throw MarmotError(.wrongKind) }
            guard rumor.pubkey == inner.pubkey else { throw MarmotError(.authorMismatch) }
            try refuseLoose(rumor, in: inner)
            guard rumor.hasRightID else { throw MarmotError(.badRumorID) }
            guard rumor.signature == nil || rumor.isSigned else { throw MarmotError(.badSignature) }
            return Opened(event: rumor, path: .sealed)
        default: throw MarmotError(.wrongKind)
        }
    }

    private static func refuseLoose(
        _ trigger: NostrEvent, in outer: NostrEvent
    ) throws(MarmotError) {
        guard trigger.tags != TokenFormat.pushV1.triggerTags || !(trigger.isLoose || outer.isLoose) else {
            throw MarmotError(.malformedInside)
        }
    }

    /// Steps 1, 2 and 5 in a row, for one key.
    ///
    /// - Throws: `.wrongKind`, `.wrongRecipient`, `.badSignature`, `.doesNotOpen`, `.malformedInside`,
    ///   `.authorMismatch`, `.badRumorID`.
    public static func unwrap(_ wrap: NostrEvent, with pair: Secp256k1KeyPair) throws(MarmotError) -> Opened {
        _ = try addressee(of: wrap, among: [pair.publicKey])
        try verify(wrap)
        return try open(wrap, with: pair)
    }

    /// Decrypts a layer's content with the key that its own author and we share.
    private static func layer(
        in outer: NostrEvent, with pair: Secp256k1KeyPair
    ) throws(MarmotError) -> NostrEvent {
        let text = try NIP44.decrypt(outer.content, key: NIP44.conversationKey(pair, outer.pubkey))
        do { return try NostrEvent.parse(text, .sealed) } catch { throw MarmotError(.malformedInside) }
    }

    // MARK: writing

    /// What one layer needs besides its content.
    package struct Layer: Sendable {
        /// Seconds; up to two days back, never ahead (NIP-59).
        package var createdAt: Int64
        /// 32 random bytes for NIP-44.
        package var nonce: [UInt8]
        /// 32 random bytes for the signature.
        package var auxiliary: [UInt8]

        /// - Parameter createdAt: Unix seconds.
        /// - Parameter nonce: 32 random bytes.
        /// - Parameter auxiliary: 32 random bytes.
        package init(createdAt: Int64, nonce: [UInt8], auxiliary: [UInt8]) {
            self.createdAt = createdAt
            self.nonce = nonce
            self.auxiliary = auxiliary
        }

        /// Draws everything at random; the time from the last two days.
        package static func random(_ world: World) -> Layer {
            let back = world.random(below: MarmotLimits.backdating.components.seconds + 1)
            return Layer(
                createdAt: max(0, world.now().seconds - back), nonce: world.randomBytes(NIP44.nonceBytes),
                auxiliary: world.randomBytes(32))
        }
    }

    /// Puts an event into a seal: kind 13, without tags, signed by the event's author.
    ///
    /// - Parameter author: the pair of the event's `pubkey`.
    /// - Throws: `.tooMuchContent`; `.authorMismatch` if the event names another author.
    package static func seal(
        _ rumor: NostrEvent, by author: Secp256k1KeyPair, to server: XOnlyKey, _ layer: Layer,
        prefix: NIP44.Prefix = .short
    ) throws(MarmotError) -> NostrEvent {
        guard rumor.pubkey == author.publicKey else { throw MarmotError(.authorMismatch) }
        let content = try NIP44.encrypt(
            rumor.serialized(), key: NIP44.conversationKey(author, server), nonce: layer.nonce, prefix: prefix
        )
        return .signed(
            kind: NostrKind.seal, createdAt: layer.createdAt, content: content, by: author,
            auxiliary: layer.auxiliary)
    }

    /// Puts an event into a wrap: kind 1059, addressed to the server, signed by a key for this wrap only.
    ///
    /// - Parameter inner: a seal, or a signed 446.
    /// - Throws: `.tooMuchContent`.
    package static func wrap(
        _ inner: NostrEvent, by wrapper: Secp256k1KeyPair, to server: XOnlyKey, _ layer: Layer,
        prefix: NIP44.Prefix = .short
    ) throws(MarmotError) -> NostrEvent {
        let content = try NIP44.encrypt(
            inner.serialized(), key: NIP44.conversationKey(wrapper, server), nonce: layer.nonce,
            prefix: prefix)
        return .signed(
            kind: NostrKind.giftWrap, createdAt: layer.createdAt, tags: [["p", server.hex]], content: content,
            by: wrapper, auxiliary: layer.auxiliary)
    }

    /// Seals and wraps a rumor with fresh random values.
    ///
    /// - Throws: `.tooMuchContent`; `.authorMismatch`.
    package static func wrap(
        sealing rumor: NostrEvent, by author: Secp256k1KeyPair, to server: XOnlyKey, world: World
    ) throws(MarmotError) -> NostrEvent {
        let sealed = try seal(rumor, by: author, to: server, .random(world))
        return try wrap(sealed, by: .generate(world), to: server, .random(world))
    }
}
