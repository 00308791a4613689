@testable import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("Devices with several tokens, and with none")
struct SeveralTokensTests {
    private static func second(_ crowd: Crowd) throws -> MarmotLeaf.Settings.Server {
        .init(key: try crowd.props.pair().publicKey, relayHint: "wss://second.example.org")
    }

    private static func device(
        _ crowd: Crowd, _ format: TokenFormat, _ further: [MarmotLeaf.Settings.Server],
        keeping tokens: GroupTokens = GroupTokens()
    ) -> MarmotLeaf {
        MarmotLeaf(
            .init(
                platform: .apple, server: crowd.server.publicKey, format: format,
                relayHint: "wss://inbox.example.org", furtherServers: further),
            identity: crowd[3].pair, tokens: tokens, now: crowd.props.now.wall)
    }

    private static func register(
        _ device: inout MarmotLeaf, _ targets: [DeviceTarget], _ occasion: MarmotLeaf.Occasion,
        _ crowd: Crowd
    ) throws -> MarmotLeaf.Due {
        try device.register(
            targets, occasion, in: crowd[3].view, now: crowd.props.now, using: &crowd.props.random)
    }

    @Test("In the seed text all tokens of a device are told at once, and others wake each of them")
    func severalTokens() throws {
        let crowd = try Crowd(.seed, seed: 61)
        var device = Self.device(crowd, .seed, [])
        let targets = try (0..<3).map { _ in try DeviceTarget(.apns, token: crowd.props.bytes(32)) }
        let told = try Self.register(&device, targets, .joined, crowd)
        #expect(told.events.map(\.kind) == [447] && told.events[0].tags.count { $0[0] == "token" } == 3)
        try crowd.spread(told.events, from: 3)
        #expect(crowd[5].known(crowd.props) == [3: 3])
        let boxes = MarmotOriginRoutine.choose(
            from: crowd[5].device.tokens, in: crowd[5].view, sender: crowd[5].pair.publicKey,
            now: crowd.props.now.wall)
        let opened = try boxes.map { try TokenBox.decrypt($0.box, .seed, with: crowd.server).token }
        #expect(opened.count == 3 && targets.allSatisfy { target in opened.contains { $0 == target.token } })

        // The same again, in another order and after a restart, says nothing; one fewer says so.
        var again = Self.device(crowd, .seed, [], keeping: device.tokens)
        #expect(try Self.register(&again, targets.reversed(), .started, crowd).events.isEmpty)
        crowd.props.pass(.seconds(1))
        let fewer = try Self.register(&again, Array(targets.dropLast()), .started, crowd)
        #expect(fewer.events.map(\.kind) == [449])
        try crowd.spread(fewer.events, from: 3)
        #expect(crowd[5].known(crowd.props) == [3: 2])
    }

    @Test(
        "A second server has boxes of its own, and is taken back when it is no longer wanted",
        arguments: [TokenFormat.seed, .pushV1])
    func severalServers(_ format: TokenFormat) throws {
        let crowd = try Crowd(format, seed: 62)
        let further = try Self.second(crowd)
        var device = Self.device(crowd, format, [further, further])
        let target = try DeviceTarget(.apns, token: crowd.props.bytes(32))
        let told = try Self.register(&device, [target], .started, crowd)
        #expect(told.events.count == 1)
        try crowd.spread(told.events, from: 3)
        let known = crowd[5].device.tokens.leaves[3]?.tokens ?? []
        #expect(Set(known.map(\.server)) == [crowd.server.publicKey, further.key] && known.count == 2)
        if format == .pushV1 { #expect(Set(known.map(\.relayHint)).count == 2) }
        #expect(try Self.register(&device, [target], .started, crowd).events.isEmpty)

        crowd.props.pass(.seconds(1))
        var one = Self.device(crowd, format, [], keeping: device.tokens)
        let fewer = try Self.register(&one, [target], .started, crowd)
        #expect(fewer.events.map(\.kind) == (format == .seed ? [449] : [449, 447]))
        try crowd.spread(fewer.events, from: 3)
        #expect(crowd[5].device.tokens.leaves[3]?.tokens.map(\.server) == [crowd.server.publicKey])
    }

    @Test("All of them are renewed, with fresh boxes")
    func renewal() throws {
        let crowd = try Crowd(.seed, seed: 63)
        var device = Self.device(crowd, .seed, [])
        let targets = try (0..<2).map { _ in try DeviceTarget(.apns, token: crowd.props.bytes(32)) }
        try crowd.spread(try Self.register(&device, targets, .joined, crowd).events, from: 3)
        let first = crowd[5].device.tokens.leaves[3]?.tokens ?? []
        crowd.props.pass(.seconds(30 * 86_400))
        let due = device.due(at: crowd.props.now, in: crowd[3].view, using: &crowd.props.random)
        #expect(due.events.map(\.kind) == [449])
        try crowd.spread(due.events, from: 3)
        let second = crowd[5].device.tokens.leaves[3]?.tokens ?? []
        #expect(second.count == 2 && !second.contains { new in first.contains { $0.isSame(as: new) } })
    }

    @Test("What a format has no room for is refused, and nothing changes")
    func room() throws {
        let crowd = try Crowd(.seed, seed: 64)
        let further = try Self.second(crowd)
        let targets = try (0..<9).map { _ in try DeviceTarget(.apns, token: crowd.props.bytes(32)) }
        let google = try DeviceTarget(.fcm, token: Secret("fid:APA91b".utf8))
        for (format, further, targets, code) in [
            (TokenFormat.seed, [], targets, MarmotErrorCode.tooMuchContent),
            (.seed, [further], Array(targets.prefix(5)), .tooMuchContent),
            (.mip05Long, [], Array(targets.prefix(2)), .tooMuchContent),
            (.mip05Short, [further], Array(targets.prefix(1)), .tooMuchContent),
            (.pushV1, [], Array(targets.prefix(2)), .tooMuchContent),
            (.seed, [], [targets[0], google], .foreignPushService), (.seed, [], [], .foreignPushService)
        ] {
            var device = Self.device(crowd, format, further)
            #expect(throws: MarmotError(code)) { try Self.register(&device, targets, .joined, crowd) }
            #expect(device.tokens.leaves.isEmpty)
        }
        // One token named twice is one.
        var device = Self.device(crowd, .mip05Long, [])
        #expect(
            try Self.register(&device, [targets[0], targets[0]], .joined, crowd).events.map(\.kind) == [447])
    }

    @Test(
        "A device without a token asks, is answered, and can wake the others; it is woken by nobody",
        arguments: TokenFormat.allCases)
    func asking(_ format: TokenFormat) throws {
        let crowd = try Crowd(format, seed: 65, platform: .apple)
        for leaf in [UInt32(5), 7] { try crowd.join(leaf) }
        // A desktop comes in at leaf 3 and knows nobody.
        let settings = MarmotLeaf.Settings(
            platform: .desktop, server: crowd.server.publicKey, format: format)
        crowd[3] = Member(crowd[3].view, leaf: 3, pair: crowd[3].pair, settings, crowd.props)
        crowd.props.pass(.seconds(60))
        let asked = crowd[3].device.ask(in: crowd[3].view, now: crowd.props.now, using: &crowd.props.random)
        #expect(asked.changed.isEmpty)
        guard GossipProfile(format) != .mip05 else {
            #expect(asked.events.isEmpty, "the texts have no such request")
            return
        }
        #expect(asked.events.map(\.kind) == [447] && asked.events[0].signature == nil)
        try crowd.spread(asked.events, from: 3)
        #expect(crowd[5].known(crowd.props)[3] == nil)
        crowd.props.pass(.seconds(2))
        try crowd.spread(crowd.due(5).events, from: 5)
        #expect(crowd[3].known(crowd.props) == [5: 1, 7: 1])
        let chosen = MarmotOriginRoutine.choose(
            from: crowd[3].device.tokens, in: crowd[3].view, sender: crowd[3].pair.publicKey,
            now: crowd.props.now.wall)
        #expect(chosen.count == 2)
    }

    @Test("Asking takes nothing back of what the device said before")
    func askingWithToken() throws {
        let crowd = try Crowd(.seed, seed: 66)
        try crowd.join(3)
        crowd.props.pass(.seconds(60))
        let asked = crowd[3].device.ask(in: crowd[3].view, now: crowd.props.now, using: &crowd.props.random)
        try crowd.spread(asked.events, from: 3)
        #expect(crowd[5].known(crowd.props)[3] == 1)
    }

    @Test("A long list is cut between leaves: whoever hears one part knows all of its leaves' tokens")
    func lists() throws {
        var props = Props(seed: 67)
        let server = try props.pair().publicKey
        let owner = try props.pair()
        // Eight tokens of each leaf, of lengths that meet the cut in each place.
        var listed: [ListedToken] = []
        for leaf in UInt32(0)..<40 {
            for at in 0..<MarmotLimits.tokensOfLeaf {
                let length = 32 + (Int(leaf) * 37 + at * 11) % 150
                let token = try props.token(.seed, to: server, device: props.bytes(length))
                listed.append(ListedToken(leaf: leaf, token: token))
            }
        }
        let reference = GossipReference(id: Array(repeating: 1, count: 32), nonce: nil)
        let events = GossipEvent.lists(
            listed.shuffled(using: &props.random), answering: reference, .seed, author: owner.publicKey,
            at: props.now.wall.seconds)
        #expect(events.count > 3)
        var seen: Set<UInt32> = []
        for event in events {
            guard case .list(.seed, let part, _, 0) = try Gossip(reading: event) else { continue }
            let leaves = Dictionary(grouping: part, by: \.leaf)
            #expect(leaves.values.allSatisfy { $0.count == MarmotLimits.tokensOfLeaf })
            #expect(seen.isDisjoint(with: leaves.keys))
            seen.formUnion(leaves.keys)
        }
        #expect(seen.count == 40)
    }

    @Test("A leaf that no message has room for is left out, and takes nobody with it")
    func hugeLeaf() throws {
        var props = Props(seed: 68)
        let server = try props.pair().publicKey
        let owner = try props.pair()
        var listed = try (0..<8).map { _ in
            ListedToken(leaf: 2, token: try props.token(.seed, to: server, device: props.bytes(4_000)))
        }
        for leaf in [UInt32(1), 3] {
            listed.append(ListedToken(leaf: leaf, token: try props.token(.seed, to: server)))
        }
        let reference = GossipReference(id: Array(repeating: 1, count: 32), nonce: nil)
        let events = GossipEvent.lists(
            listed, answering: reference, .seed, author: owner.publicKey, at: props.now.wall.seconds)
        #expect(events.count == 1)
        guard case .list(.seed, let part, _, 0) = try Gossip(reading: events[0]) else { return }
        #expect(part.map(\.leaf) == [1, 3])
    }
}
