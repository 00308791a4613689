import MarmotPush
import Primitives
import PushModel
import Secp256k1Keys
import WireFormats

/// A group that phones on command lines share. It stands for MLS: whoever has its key is a member, reads all
/// that was said, and proves by a signature who says something. For trials: nothing in it is secret from
/// those who have ever had the key.
///
/// What is said is an event (kind 9, 447 to 450, 9021, 9022) in an envelope that its author signs, in a wrap
/// (kind 1059) to the group's key.
struct PlayedGroup {
    /// Who is in, and since which message.
    private struct Standing {
        var isIn: Bool
        var order: Int64
    }

    /// Something that was said, and by whom.
    struct Said {
        let id: [UInt8]
        let event: NostrEvent
        let order: Int64
    }

    enum Kind {
        static let text = 9
        static let envelope = 9_020
        /// As NIP-29 counts those who come and go.
        static let joined = 9_021
        static let left = 9_022
    }

    static let members = 256
    /// Messages that are remembered as heard.
    static let heard = 2_000

    let pair: Secp256k1KeyPair
    private var standings: [XOnlyKey: Standing] = [:]
    /// What the library keeps of it.
    var device: Secret?
    private(set) var heard: [[UInt8]] = []
    /// The order of our latest message; the next one's is greater.
    private var latest: Int64 = 0

    init(_ pair: Secp256k1KeyPair) { self.pair = pair }

    /// What its members call it: the start of its public key.
    var name: String { String(pair.publicKey.hex.prefix(12)) }
    var members: [XOnlyKey] {
        standings.filter(\.value.isIn).map(\.key).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// A member's leaf: MLS would give one; here each is drawn from the key, and two meet once in billions.
    func leaf(of member: XOnlyKey) -> UInt32 {
        SHA256.hash(pair.publicKey.bytes + member.bytes).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    func view(of member: XOnlyKey) -> MarmotGroup {
        let leaves = (members + [member]).map { (leaf(of: $0), $0.bytes) }
        return MarmotGroup(
            id: pair.publicKey.bytes, ownLeaf: leaf(of: member),
            members: Dictionary(leaves, uniquingKeysWith: { $1 }))
    }

    // MARK: saying

    /// The wrap of something to say.
    mutating func wrap(
        _ event: NostrEvent, by author: Secp256k1KeyPair, _ world: World
    ) throws(MarmotError) -> NostrEvent {
        latest = max(latest + 1, world.now().milliseconds)
        let envelope = NostrEvent.signed(
            kind: Kind.envelope, createdAt: world.now().seconds, tags: [["order", String(latest)]],
            content: event.serialized(), by: author, auxiliary: world.randomBytes(32))
        note(Said(id: [], event: event, order: latest))
        return try GiftWrap.wrap(envelope, by: .generate(world), to: pair.publicKey, .random(world))
    }

    func event(_ kind: Int, _ text: String = "", by author: XOnlyKey, _ world: World) -> NostrEvent {
        .rumor(
            kind: kind, createdAt: world.now().seconds, tags: [], content: Secret(text.utf8), author: author)
    }

    // MARK: hearing

    /// What wraps say that was not heard before, in the order in which it was said. What does not open, and
    /// what its author did not sign, says nothing.
    func open(_ wraps: [NostrEvent]) -> [Said] {
        let known = Set(heard)
        return wraps.compactMap { wrap in known.contains(wrap.id) ? nil : open(wrap) }
            .sorted { ($0.order, $0.id.first ?? 0) < ($1.order, $1.id.first ?? 0) }
    }

    private func open(_ wrap: NostrEvent) -> Said? {
        // Whatever is wrong with a layer, nothing was said.
        guard wrap.hasTag("p", pair.publicKey.hex),
            let text = try? NIP44.decrypt(
                wrap.content, key: NIP44.conversationKey(pair, wrap.pubkey)),
            // As above.
            let envelope = try? NostrEvent.parse(text), envelope.kind == Kind.envelope, envelope.isSigned,
            let order = envelope.tag("order").flatMap({ Int64($0) }), order > 0,
            // As above.
            let event = try? NostrEvent.parse(envelope.content, .rumor), event.pubkey == envelope.pubkey
        else { return nil }
        return Said(id: wrap.id, event: event, order: order)
    }

    mutating func remember(_ id: [UInt8]) {
        heard.append(id)
        if heard.count > Self.heard { heard.removeFirst(heard.count - Self.heard) }
    }

    /// Takes in who came and who went.
    mutating func note(_ said: Said) {
        let member = said.event.pubkey
        let isIn = said.event.kind != Kind.left
        if let standing = standings[member], standing.order >= said.order { return }
        guard standings[member] != nil || standings.count < Self.members else { return }
        standings[member] = Standing(isIn: isIn, order: said.order)
    }

    // MARK: at rest

    func write(into json: inout JSONWriter) {
        json.beginObject()
        json.member("key", utf8: pair.secret.hexDigits)
        json.member("latest", latest)
        json.beginArray("members")
        for (member, standing) in standings {
            json.string(member.hex)
            json.int(standing.isIn ? standing.order : -standing.order)
        }
        json.endArray()
        json.beginArray("heard")
        for id in heard { json.string(Hex.encode(id)) }
        json.endArray()
        json.member("device", utf8: device ?? Secret([]))
        json.endObject()
    }

    /// - Returns: `nil` for what ``write(into:)`` did not write.
    init?(_ value: JSONValue) {
        // Whatever is wrong with a member, it is none of ours.
        guard let digits = value["key"]?.string, let scalar = Secret(digits.utf8).fromHex,
            let pair = try? Secp256k1KeyPair(secret: scalar), let latest = value["latest"]?.int64,
            (0..<1 << 50).contains(latest),
            let members = value["members"]?.array, let ids = value["heard"]?.array,
            let device = value["device"]?.string
        else { return nil }
        self.init(pair)
        self.latest = latest
        for at in stride(from: 0, to: members.count - 1, by: 2) {
            guard let member = members[at].string.flatMap({ XOnlyKey(hex: $0) }),
                let order = members[at + 1].int64, order != .min
            else { return nil }
            standings[member] = Standing(isIn: order > 0, order: abs(order))
        }
        for id in ids {
            // As above.
            guard let bytes = id.string.flatMap({ try? Hex.decode($0.utf8) }) else { return nil }
            heard.append(bytes)
        }
        // It says of its own accord what is wrong with it.
        self.device = device.isEmpty ? nil : Secret(device.utf8)
    }
}
