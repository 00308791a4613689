import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// Stands for the caller's MLS library: a tree of leaves, and an order of messages.
struct GroupDouble: GroupView {
    var groupID: [UInt8] = Array("group".utf8)
    var ownLeaf: UInt32
    var members: [UInt32: XOnlyKey]

    var activeLeaves: [UInt32] { members.keys.sorted() }
    func member(ofLeaf leaf: UInt32) -> XOnlyKey? { members[leaf] }

    /// The same group as another of its leaves sees it.
    func seen(by leaf: UInt32) -> GroupDouble {
        var view = self
        view.ownLeaf = leaf
        return view
    }
}

/// Keys, clocks and chance of a test.
struct Props {
    var random: SeededRandom
    var now = Moment(wall: UnixTime(seconds: 1_767_225_600), instant: .now)
    private var index: UInt64 = 0

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func pass(_ span: Duration) {
        now = Moment(wall: now.wall + span, instant: now.instant + span)
    }

    mutating func pair() throws -> Secp256k1KeyPair { try Secp256k1KeyPair(secret: bytes(32)) }

    mutating func bytes(_ count: Int) -> Secret {
        Secret((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }

    /// The next message of the group, in its order.
    mutating func message(_ event: NostrEvent, from leaf: UInt32, epoch: UInt64 = 1) -> GroupMessage {
        index += 1
        return GroupMessage(event, senderLeaf: leaf, order: MessageOrder(epoch: epoch, index: index))
    }

    /// An encrypted token for a server, as some device would make it.
    mutating func token(
        _ format: TokenFormat, to server: XOnlyKey, device: Secret? = nil, hint: String? = nil
    ) throws -> GossipToken {
        let target = try DeviceTarget(.apns, token: device ?? bytes(32))
        let box = try TokenBox.encrypt(
            target, to: server, format, ephemeral: pair(), nonce: Array(bytes(12).array),
            padding: Array(bytes(TokenBox.paddingBytes(target, format) ?? 0).array))
        return try GossipToken(format, box: box, server: server, relayHint: hint)
    }
}

extension Secret {
    var array: [UInt8] { reveal { Array($0) } }
}

extension Moment {
    func with(_ wall: UnixTime) -> Moment { Moment(wall: wall, instant: instant) }
}

/// One member's device with the group as it sees it.
struct Member {
    var device: MarmotLeaf
    var view: GroupDouble
    let pair: Secp256k1KeyPair

    init(
        _ group: GroupDouble, leaf: UInt32, pair: Secp256k1KeyPair, _ settings: MarmotLeaf.Settings,
        _ props: Props
    ) {
        self.pair = pair
        view = group.seen(by: leaf)
        device = MarmotLeaf(settings, identity: pair, now: props.now.wall)
    }

    mutating func due(_ props: inout Props) -> MarmotLeaf.Due {
        device.due(at: props.now, in: view, using: &props.random)
    }

    mutating func register(
        _ target: DeviceTarget, _ occasion: MarmotLeaf.Occasion = .joined, _ props: inout Props
    ) throws -> MarmotLeaf.Due {
        try device.register(target, occasion, in: view, now: props.now, using: &props.random)
    }

    /// Tokens in force as this member knows them, leaf by leaf.
    func known(_ props: Props) -> [UInt32: Int] {
        Dictionary(grouping: device.tokens.live(in: view, at: props.now.wall), by: \.leaf)
            .mapValues(\.count)
    }
}

/// Members at leaves 0, 3, 5 and 7, all of one app.
final class Crowd {
    static let leaves: [UInt32] = [0, 3, 5, 7]
    var props: Props
    let server: Secp256k1KeyPair
    var members: [UInt32: Member] = [:]

    init(
        _ format: TokenFormat, seed: UInt64 = 1, hint: String? = "wss://inbox.example.org",
        platform: DevicePlatform = .apple
    ) throws {
        props = Props(seed: seed)
        server = try props.pair()
        let pairs = try Self.leaves.map { ($0, try props.pair()) }
        let group = GroupDouble(
            ownLeaf: 0, members: Dictionary(uniqueKeysWithValues: pairs.map { ($0, $1.publicKey) }))
        let settings = MarmotLeaf.Settings(
            platform: platform, server: server.publicKey, format: format, relayHint: hint)
        for (leaf, pair) in pairs { members[leaf] = Member(group, leaf: leaf, pair: pair, settings, props) }
    }

    subscript(_ leaf: UInt32) -> Member {
        get { members[leaf]! }
        set { members[leaf] = newValue }
    }

    func due(_ leaf: UInt32) -> MarmotLeaf.Due { members[leaf]!.due(&props) }

    func hear(_ leaf: UInt32, _ event: NostrEvent, from sender: UInt32) -> MarmotLeaf.Receipt {
        receive(leaf, props.message(event, from: sender))
    }

    @discardableResult
    func receive(_ leaf: UInt32, _ message: GroupMessage) -> MarmotLeaf.Receipt {
        let view = members[leaf]!.view
        return members[leaf]!.device.receive(message, in: view, now: props.now, using: &props.random)
    }

    func register(
        _ leaf: UInt32, _ target: DeviceTarget, _ occasion: MarmotLeaf.Occasion
    ) throws -> MarmotLeaf.Due {
        try members[leaf]!.register(target, occasion, &props)
    }

    func optOut(_ leaf: UInt32) -> MarmotLeaf.Due {
        let view = members[leaf]!.view
        return members[leaf]!.device.optOut(in: view, now: props.now, using: &props.random)
    }

    func removed(_ leaf: UInt32, leaves: [UInt32]) -> MarmotLeaf.Due {
        members[leaf]!.device.removed(leaves: leaves)
    }

    /// Gives a rumor to everybody but its sender, each after a journey through JSON.
    func spread(_ events: [NostrEvent], from leaf: UInt32) throws {
        for event in events {
            let arrived = try NostrEvent.parse(event.serialized(), .rumor)
            for other in Self.leaves where other != leaf && members[other] != nil {
                let receipt = hear(other, arrived, from: leaf)
                try #require(receipt.ignored == nil && receipt.refused == 0)
            }
        }
    }

    /// A member registers a device and tells the group.
    @discardableResult
    func join(_ leaf: UInt32, token: Secret? = nil) throws -> [NostrEvent] {
        let target = try DeviceTarget(.apns, token: token ?? props.bytes(32))
        let due = try register(leaf, target, .joined)
        try spread(due.events, from: leaf)
        return due.events
    }
}

/// A window with its own chance.
final class Bursts {
    private var window = BurstWindow()
    private var random: SeededRandom

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    var nextDeadline: ContinuousClock.Instant? { window.nextDeadline }
    func sent(in group: [UInt8], at now: ContinuousClock.Instant) -> Bool {
        window.sent(in: group, at: now, using: &random)
    }
    func due(at now: ContinuousClock.Instant) -> [[UInt8]] { window.due(at: now) }
    func forget(_ group: [UInt8]) { window.forget(group) }
}
