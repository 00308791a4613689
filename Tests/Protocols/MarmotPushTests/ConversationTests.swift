import MarmotPush
import Primitives
import PushModel
import PushTesting
import Testing

/// Device, origin and server of this protocol exchange bytes in memory. Read this first.
@Suite("Marmot conversation")
struct ConversationTests {
    private static let inbox = "wss://inbox.example.org"

    /// The server's part in short: opens the wrap and each token in it; decoys wake nobody.
    private static func wake(_ frame: Secret, _ server: Secp256k1KeyPair) throws -> [DeviceTarget] {
        let message = try frame.reveal { (raw) throws(MarmotError) in try NostrMessage.FromClient.parse(raw) }
        guard case .event(let wrap) = message else { return [] }
        let trigger = try TriggerContent(reading: GiftWrap.unwrap(wrap, with: server).event)
        // A decoy opens for nobody, which is not an error.
        return trigger.chunks.compactMap { try? TokenBox.decrypt($0, trigger.format, with: server) }
    }

    /// What a sender publishes, as frames.
    private static func publish(_ crowd: Crowd, from leaf: UInt32, _ directory: MarmotOrigin.Directory)
        throws -> [Secret]
    {
        let member = crowd[leaf]
        let tokens = MarmotOrigin.choose(
            from: member.device.tokens, in: member.view, sender: member.pair.publicKey,
            now: crowd.props.now.wall)
        let sent = try MarmotOrigin(directory)
            .notify(tokens, now: crowd.props.now.wall, using: &crowd.props.random)
        #expect(sent.unreachable.isEmpty)
        return sent.triggers.flatMap { trigger in
            trigger.relays.map { _ in NostrMessage.FromClient.event(trigger.wrap).serialized() }
        }
    }

    private static func directory(_ server: Secp256k1KeyPair) throws -> MarmotOrigin.Directory {
        let event = RelayList.event(
            relays: [inbox], at: 1_767_225_000, by: server, auxiliary: Array(repeating: 0, count: 32))
        var directory = MarmotOrigin.Directory()
        directory.lists[server.publicKey] = RelayList.newest(of: [event], author: server.publicKey)
        return directory
    }

    @Test(
        "Three members, one server: gossip, a message, a trigger, and the others' phones are woken",
        arguments: TokenFormat.allCases)
    func wholeWay(_ format: TokenFormat) throws {
        let crowd = try Crowd(format, seed: 51, hint: Self.inbox)
        let phones: [UInt32: Secret] = [
            3: Secret(Array(repeating: 0x33, count: 32)), 5: Secret(Array(repeating: 0x55, count: 32)),
            7: Secret(Array(repeating: 0x77, count: 32))
        ]
        // Each joins and says so inside the group; everybody listens.
        for leaf in phones.keys.sorted() { try crowd.join(leaf, token: phones[leaf]) }
        // Leaf 3 writes three messages in a row: one window, one notification.
        let window = Bursts(seed: 9)
        let group = crowd[3].view.groupID
        for step in 0..<3 {
            let at = crowd.props.now.instant + .milliseconds(200 * step)
            #expect(!window.sent(in: group, at: at))
        }
        crowd.props.pass(.seconds(2))
        #expect(window.due(at: crowd.props.now.instant) == [group])
        let frames = try Self.publish(crowd, from: 3, Self.directory(crowd.server))
        #expect(frames.count == 1)
        let woken = try frames.flatMap { try Self.wake($0, crowd.server) }
        #expect(woken.count == 2 && woken.allSatisfy { $0.platform == .apns })
        for leaf in [UInt32(5), 7] {
            #expect(woken.contains { $0.token == phones[leaf]! }, "leaf \(leaf)")
        }
        // Leaf 5 switches notifications off, leaf 7 is removed: nobody is left to wake.
        crowd.props.pass(.seconds(60))
        let out = crowd.optOut(5)
        try crowd.spread(out.events, from: 5)
        _ = crowd.removed(3, leaves: [7])
        crowd[3].view.members[7] = nil
        #expect(try Self.publish(crowd, from: 3, Self.directory(crowd.server)).isEmpty)
        // Who is out still wakes others.
        let last = try Self.publish(crowd, from: 5, Self.directory(crowd.server))
        let others = try last.flatMap { try Self.wake($0, crowd.server) }
        #expect(others.contains { $0.token == phones[3]! })
    }

    @Test("Somebody who was offline catches up by asking, and hears of a token only once")
    func catchingUp() throws {
        let crowd = try Crowd(.seed, seed: 52)
        let late = crowd.members.removeValue(forKey: 0)!
        for leaf in [UInt32(3), 5] { try crowd.join(leaf) }
        crowd.props.pass(.seconds(40))
        // What those two asked is answered before.
        for leaf in [UInt32(3), 5, 7] { try crowd.spread(crowd.due(leaf).events, from: leaf) }
        crowd.members[0] = late
        try crowd.join(0)
        #expect(crowd[0].known(crowd.props) == [0: 1])
        // All the answers that come due, in the order in which they do; each one silences the rest.
        var lists = 0
        for _ in 0..<200 {
            crowd.props.pass(.milliseconds(10))
            for leaf in [UInt32(3), 5, 7] {
                let answers = crowd.due(leaf).events
                lists += answers.count
                try crowd.spread(answers, from: leaf)
            }
        }
        #expect(lists == 1)
        #expect(crowd[0].known(crowd.props) == [0: 1, 3: 1, 5: 1])
    }

    @Test("A trigger for one server wakes nobody at another, and one that a relay bent wakes nobody at all")
    func wrongServer() throws {
        let crowd = try Crowd(.mip05Long, seed: 53, hint: Self.inbox)
        for leaf in [UInt32(3), 5] { try crowd.join(leaf) }
        let frames = try Self.publish(crowd, from: 3, Self.directory(crowd.server))
        let frame = try #require(frames.first)
        let stranger = try crowd.props.pair()
        #expect(throws: MarmotError(.wrongRecipient)) { try Self.wake(frame, stranger) }
        let text = String(decoding: frame.array, as: UTF8.self)
        let bent = text.replacing("\"created_at\":1", with: "\"created_at\":2")
        #expect(bent != text)
        #expect(throws: MarmotError(.badSignature)) { try Self.wake(Secret(bent.utf8), crowd.server) }
    }
}
