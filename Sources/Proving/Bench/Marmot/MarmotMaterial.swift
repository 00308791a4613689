import MarmotPush
import PushModel
import Secp256k1Keys

/// What the measurement opens: made before the clock runs, each thing with keys of its own.
struct MarmotMaterial {
    /// A wrap as a Nostr relay hands it over.
    struct Wrap {
        let text: Secret
        let event: NostrEvent
    }

    let server: Secp256k1KeyPair
    private let world: World

    init(world: World) {
        self.world = world
        server = .generate(world)
    }

    /// Encrypted tokens of one format: APNs tokens of 32 bytes.
    func boxes(_ format: TokenFormat, _ count: Int) throws -> [Secret] {
        try (0..<count).map { _ in
            let target = try DeviceTarget(.apns, token: Secret(world.randomBytes(32)))
            return try TokenBox.encrypt(target, to: server.publicKey, format, world: world)
        }
    }

    /// Triggers of so many tokens, each from a one-time author, sealed and wrapped.
    func wraps(_ format: TokenFormat, tokens: Int, _ count: Int) throws -> [Wrap] {
        try (0..<count).map { _ in
            let author = Secp256k1KeyPair.generate(world)
            let content = try TriggerContent(format, try boxes(format, tokens)).serialized()
            let rumor = NostrEvent.rumor(
                kind: NostrKind.trigger, createdAt: world.now().seconds, tags: format.triggerTags,
                content: content, author: author.publicKey)
            let wrap = try GiftWrap.wrap(sealing: rumor, by: author, to: server.publicKey, world: world)
            return Wrap(text: wrap.serialized(), event: wrap)
        }
    }
}
