import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// Device, origin and relay of this protocol exchange bytes in memory. Read this first.
@Suite("Marmot conversation", .timeLimit(.minutes(30)))
struct MarmotConversationTests {
    private static let inbox = "wss://inbox.example.org"

    /// The relay that the members' devices have registered with, with delivery and push services.
    private static func relay(of crowd: Crowd, key: Secp256k1KeyPair? = nil) async throws -> MarmotRig {
        let serving = try MarmotServing(keys: [key ?? crowd.server], topic: MarmotRig.topic, servesFCM: true)
        return try await MarmotRig(serving, now: crowd.props.now.wall)
    }

    /// The event of a frame, as an inbox relay hands it on.
    private static func event(_ frame: Secret) throws -> NostrEvent {
        let message = try frame.reveal { (raw) throws(MarmotError) in try NostrMessage.FromClient.parse(raw) }
        guard case .event(let wrap) = message else { throw MarmotError(.malformedMessage) }
        return wrap
    }

    private static func wake(_ token: Secret) -> Wake {
        Wake(platform: .apns, tokenHex: Hex.encode(token.array))
    }

    /// What a sender publishes, as frames.
    private static func publish(_ crowd: Crowd, from leaf: UInt32, _ directory: MarmotOriginRoutine.Directory)
        throws -> [Secret]
    {
        let member = crowd[leaf]
        let tokens = MarmotOriginRoutine.choose(
            from: member.device.tokens, in: member.view, sender: member.pair.publicKey,
            now: crowd.props.now.wall)
        let sent = try MarmotOriginRoutine(directory)
            .notify(tokens, now: crowd.props.now.wall, using: &crowd.props.random)
        #expect(sent.unreachable.isEmpty)
        return sent.triggers.flatMap { trigger in
            trigger.relays.map { _ in NostrMessage.FromClient.event(trigger.wrap).serialized() }
        }
    }

    private static func directory(_ server: Secp256k1KeyPair) throws -> MarmotOriginRoutine.Directory {
        let event = RelayList.event(
            relays: [inbox], at: 1_767_225_000, by: server, auxiliary: Array(repeating: 0, count: 32))
        var directory = MarmotOriginRoutine.Directory()
        directory.lists[server.publicKey] = RelayList.newest(of: [event], author: server.publicKey)
        return directory
    }

    @Test(
        "Three members, one relay: gossip, a message, a trigger, and the others' phones are woken",
        arguments: TokenFormat.allCases)
    func wholeWay(_ format: TokenFormat) async throws {
        let crowd = try Crowd(format, seed: 51, hint: Self.inbox)
        let phones: [UInt32: Secret] = [
            3: Secret(Array(repeating: 0x33, count: 32)), 5: Secret(Array(repeating: 0x55, count: 32)),
            7: Secret(Array(repeating: 0x77, count: 32))
        ]
        let wakes = phones.mapValues(Self.wake)
        let rig = try await Self.relay(of: crowd)
        try await rig.running { rig in
            // Each joins and says so inside the group; everybody listens.
            for leaf in phones.keys.sorted() { try crowd.join(leaf, token: phones[leaf]) }
            // Leaf 3 writes three messages in a row: one window, one notification.
            let window = Bursts(seed: 9)
            let group = crowd[3].view.groupID
            for step in 0..<3 {
                let at = crowd.props.now.instant + .milliseconds(200 * step)
                #expect(!window.sent(in: group, at: at))
            }
            crowd.pass(.seconds(2), rig)
            #expect(window.due(at: crowd.props.now.instant) == [group])
            let frames = try Self.publish(crowd, from: 3, Self.directory(crowd.server))
            #expect(frames.count == 1)
            // The relay opens the wrap and each token in it; decoys wake nobody.
            let result = await rig.receive(try Self.event(try #require(frames.first)))
            #expect(result.refusal == nil)
            #expect(result.count == 2)
            #expect(result.wakes == [wakes[5]!, wakes[7]!])
            try Self.expectSilent(rig)
            // Leaf 5 switches notifications off, leaf 7 is removed: nobody is left to wake.
            crowd.pass(.seconds(60), rig)
            let out = crowd.optOut(5)
            try crowd.spread(out.events, from: 5)
            _ = crowd.removed(3, leaves: [7])
            crowd[3].view.members[7] = nil
            #expect(try Self.publish(crowd, from: 3, Self.directory(crowd.server)).isEmpty)
            // Who is out still wakes others.
            var others: Set<Wake> = []
            for frame in try Self.publish(crowd, from: 5, Self.directory(crowd.server)) {
                others.formUnion(await rig.receive(try Self.event(frame)).wakes)
            }
            #expect(others.contains(wakes[3]!))
            #expect(!others.contains(wakes[5]!))
            // Nothing of all this met the store.
            #expect(rig.store.lookups.isEmpty)
            #expect(try await rig.store.load().rows == 0)
        }
    }

    /// A phone that opens what it was sent learns that there is something, and nothing else: it fetches the
    /// message from the group's own relays.
    private static func expectSilent(_ rig: MarmotRig) throws {
        for push in rig.services.sent {
            let message = try #require(push.message.apns)
            #expect(message.topic == MarmotRig.topic && message.pushType == .background)
            #expect(message.payload == Secret(#"{"aps":{"content-available":1}}"#.utf8))
            #expect(push.custody == .volatile && push.record == nil && push.mark == nil)
        }
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

    /// A group of two phones whose first has written, and the frame that its device publishes.
    private static func trigger(_ seed: UInt64) throws -> (crowd: Crowd, frame: Secret) {
        let crowd = try Crowd(.mip05Long, seed: seed, hint: inbox)
        for leaf in [UInt32(3), 5] { try crowd.join(leaf) }
        return (crowd, try #require(try publish(crowd, from: 3, directory(crowd.server)).first))
    }

    @Test(
        "A trigger for one relay wakes nobody at another, and one that somebody bent wakes nobody at all")
    func wrongRelay() async throws {
        let (crowd, frame) = try Self.trigger(53)
        let stranger = try await Self.relay(of: crowd, key: crowd.props.pair())
        try await stranger.running { stranger in
            await stranger.expect(.wrongRecipient, of: try Self.event(frame))
            #expect(stranger.services.sent.isEmpty)
        }
        let text = String(decoding: frame.array, as: UTF8.self)
        let bent = text.replacing("\"created_at\":1", with: "\"created_at\":2")
        #expect(bent != text)
        let rig = try await Self.relay(of: crowd)
        try await rig.running { rig in
            await rig.expect(.badSignature, of: try Self.event(Secret(bent.utf8)))
            #expect(rig.services.sent.isEmpty)
            // The forgery does not stand in the way of the trigger itself.
            await rig.expect(wakes: 1, by: try Self.event(frame))
        }
    }

    @Test(
        "A token that was sealed for another relay wakes nobody, though the wrap is for this one",
        arguments: TokenFormat.allCases)
    func wrongKey(_ format: TokenFormat) async throws {
        let crowd = try Crowd(format, seed: 54, hint: Self.inbox)
        let key = try crowd.props.pair()
        let rig = try await Self.relay(of: crowd, key: key)
        try await rig.running { rig in
            let sender = Sender(rig.world, to: key)
            let device = try sender.device(.apns, 1)
            let foreign = try sender.chunk(device, format, to: crowd.server.publicKey)
            let result = await rig.receive(try sender.wrapped(format, [foreign]))
            #expect(result == MarmotRig.Result(notes: ["marmot.decoy": 1]))
            await rig.expect(wakes: 1, by: try sender.wrapped(format, [sender.chunk(device, format)]))
        }
    }

    @Test(
        "A trigger that comes again, from another inbox or out of its backlog, wakes nobody a second time")
    func replay() async throws {
        let (crowd, frame) = try Self.trigger(55)
        let rig = try await Self.relay(of: crowd)
        try await rig.running { rig in
            let wrap = try Self.event(frame)
            await rig.expect(wakes: 1, by: wrap)
            await rig.expect(.repeated, of: wrap)
            await rig.expect(.repeated, of: wrap, relay: 1)
            await rig.expect(.repeated, of: wrap, arrival: .stored)
            crowd.pass(.seconds(3_600), rig)
            await rig.expect(.repeated, of: wrap)
            #expect(rig.services.sent.count == 1)
            // A relay that has just started knows no repeats: for it, what waited at an inbox is too old.
            let next = try await Self.relay(of: crowd)
            try await next.running { next in await next.expect(.tooOld, of: wrap, arrival: .stored) }
        }
    }
}

extension Crowd {
    /// Lets time pass for the members and for their relay.
    fileprivate func pass(_ span: Duration, _ rig: MarmotRig) {
        props.pass(span)
        rig.clock.advance(by: span)
    }
}
