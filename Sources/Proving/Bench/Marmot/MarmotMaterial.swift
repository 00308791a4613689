import MarmotPush
import PushModel
import Secp256k1Keys

/// A sender of triggers to one server, each thing with keys of its own.
struct MarmotMaterial {
    /// A wrap as a Nostr relay hands it over.
    struct Wrap {
        let text: Secret
        let event: NostrEvent
    }

    let server: Secp256k1KeyPair
    private let world: World

    /// - Parameter server: `nil`: one that is made anew.
    init(_ server: Secp256k1KeyPair? = nil, world: World) {
        self.world = world
        self.server = server ?? .generate(world)
    }

    /// Encrypted tokens of one format: APNs tokens of 32 bytes.
    func boxes(_ format: TokenFormat, _ count: Int) throws -> [Secret] {
        try (0..<count).map { _ in
            let target = try DeviceTarget(.apns, token: Secret(world.randomBytes(32)))
            return try TokenBox.encrypt(target, to: server.publicKey, format, world: world)
        }
    }

    /// A trigger of a one-time author, and so many fresh wraps of it.
    func trigger(
        _ boxes: [Secret], _ format: TokenFormat, wraps: Int
    ) throws -> (rumor: NostrEvent, wraps: [NostrEvent]) {
        let author = Secp256k1KeyPair.generate(world)
        let rumor = NostrEvent.rumor(
            kind: NostrKind.trigger, createdAt: world.now().seconds, tags: format.triggerTags,
            content: try TriggerContent(format, boxes).serialized(), author: author.publicKey)
        let wraps = try (0..<wraps).map { _ in
            try GiftWrap.wrap(sealing: rumor, by: author, to: server.publicKey, world: world)
        }
        return (rumor, wraps)
    }

    /// Triggers of so many tokens, each sealed and wrapped.
    func wraps(_ format: TokenFormat, tokens: Int, _ count: Int) throws -> [Wrap] {
        try (0..<count).flatMap { _ in
            try trigger(try boxes(format, tokens), format, wraps: 1).wraps
                .map { Wrap(text: $0.serialized(), event: $0) }
        }
    }
}
