@testable import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("Marmot device")
struct MarmotDeviceTests {
    private static let apple = Secret(Array(repeating: 0xA1, count: 32))

    @Test(
        "Whoever joins tells their token and learns everybody's, in each format",
        arguments: TokenFormat.allCases)
    func joining(_ format: TokenFormat) throws {
        let crowd = try Crowd(format)
        for leaf in [UInt32(3), 5, 7] { try crowd.join(leaf) }
        #expect(crowd[0].known(crowd.props) == [3: 1, 5: 1, 7: 1])
        // A fifth device would know nobody: leaf 0 starts anew and asks.
        let fresh = Member(
            crowd[0].view, leaf: 0, pair: crowd[0].pair, crowd[0].device.settings, crowd.props)
        crowd[0] = fresh
        crowd.props.pass(.seconds(60))
        try crowd.join(0)
        let isAsking = format != .pushV1 || !crowd[3].device.schedule.pending.isEmpty
        #expect(isAsking)
        crowd.props.pass(.seconds(2))
        var due = crowd.due(3)
        due.events = due.events.filter { $0.kind == NostrKind.tokenList }
        #expect(!due.events.isEmpty)
        try crowd.spread(due.events, from: 3)
        #expect(crowd[0].known(crowd.props) == [0: 1, 3: 1, 5: 1, 7: 1])
    }

    @Test("An answer waits at random for up to two seconds, and not at all once another has answered")
    func suppression() throws {
        let crowd = try Crowd(.seed, seed: 2)
        try crowd.join(3)
        let waits = [UInt32(0), 5, 7].compactMap { crowd[$0].device.schedule.pending.first?.due }
        #expect(waits.count == 3 && Set(waits).count > 1)
        for due in waits {
            #expect(due >= crowd.props.now.instant && due <= crowd.props.now.instant + .seconds(2))
        }
        // The first to speak silences the others.
        let first = try #require(
            [UInt32(0), 5, 7].min {
                crowd[$0].device.schedule.pending[0].due < crowd[$1].device.schedule.pending[0].due
            })
        let due = crowd[first].device.schedule.pending[0].due
        crowd.props.pass(due - crowd.props.now.instant)
        let answer = crowd.due(first)
        #expect(answer.events.count == 1)
        try crowd.spread(answer.events, from: first)
        crowd.props.pass(.seconds(3))
        for leaf in [UInt32(0), 5, 7] { #expect(crowd.due(leaf).events.isEmpty) }
    }

    @Test("An answer to another request silences nobody")
    func otherAnswer() throws {
        let crowd = try Crowd(.seed, seed: 3)
        try crowd.join(3)
        let token = try crowd.props.token(.seed, to: crowd.server.publicKey)
        let other = GossipReference(
            id: Array(repeating: 1, count: 32), nonce: String(repeating: "f", count: 32))
        let list = GossipEvent.lists(
            [ListedToken(leaf: 3, token: token)], answering: other, .seed,
            author: crowd[5].pair.publicKey, at: crowd.props.now.wall.seconds)
        try crowd.spread(list, from: 5)
        crowd.props.pass(.seconds(2))
        #expect(crowd.due(0).events.count == 1)
    }

    @Test("One member's requests are answered once in thirty seconds, and ten wait at most")
    func floods() throws {
        let crowd = try Crowd(.seed, seed: 4)
        for _ in 0..<5 { try crowd.join(3) }
        #expect(crowd[0].device.schedule.pending.count == 1)
        crowd.props.pass(.seconds(31))
        try crowd.join(3)
        #expect(crowd[0].device.schedule.pending.count == 2)
        var schedule = GossipSchedule(now: crowd.props.now.wall)
        for leaf in UInt32(0)..<40 {
            schedule.sawRequest(
                GossipReference(id: [UInt8(leaf)], nonce: nil), .seed, leaf: leaf,
                at: crowd.props.now.instant, delay: .zero)
        }
        #expect(schedule.pending.count == MarmotLimits.pendingAnswers)
    }

    @Test("A start with the same token says nothing; another token, a refresh or a new server says so once")
    func starts() throws {
        for format in TokenFormat.allCases {
            let crowd = try Crowd(format, seed: 5)
            try crowd.join(3, token: Self.apple)
            let target = try DeviceTarget(.apns, token: Self.apple)
            #expect(try crowd.register(3, target, .started).events.isEmpty)
            // What the device kept is enough to know that.
            let kept = crowd[3]
            crowd[3].device = MarmotLeaf(
                kept.device.settings, identity: kept.pair, tokens: kept.device.tokens,
                now: crowd.props.now.wall)
            #expect(try crowd.register(3, target, .started).events.isEmpty)
            let other = try DeviceTarget(.apns, token: crowd.props.bytes(32))
            crowd.props.pass(.seconds(1))
            let told = try crowd.register(3, other, .started).events
            #expect(told.map(\.kind) == [format == .seed ? 449 : 447])
            try crowd.spread(told, from: 3)
            #expect(crowd[5].known(crowd.props)[3] == 1)
        }
    }

    @Test("A token is renewed with a fresh box after 30 days, or 25 to 34 at random, and then lives on")
    func refresh() throws {
        for format in TokenFormat.allCases {
            let crowd = try Crowd(format, seed: 6)
            try crowd.join(3)
            let first = try #require(crowd[5].device.tokens.leaves[3]?.tokens.first)
            crowd.props.pass(.seconds(25 * 86_400 - 1))
            #expect(crowd.due(3).events.isEmpty)
            crowd.props.pass(.seconds(format == .seed ? 5 * 86_400 : 9 * 86_400))
            crowd.props.pass(.seconds(1))
            let due = crowd.due(3)
            #expect(due.events.map(\.kind) == [format == .seed ? 449 : 447] && due.changed.contains(3))
            try crowd.spread(due.events, from: 3)
            let second = try #require(crowd[5].device.tokens.leaves[3]?.tokens.first)
            #expect(!second.isSame(as: first))
            crowd.props.pass(.seconds(10 * 86_400))
            _ = crowd.due(5)
            #expect(crowd[5].known(crowd.props)[3] == 1)
        }
    }

    @Test("Tokens older than 35 days are dropped once a day, by tag profiles, whatever the clock did before")
    func pruning() throws {
        let crowd = try Crowd(.seed, seed: 7)
        try crowd.join(3)
        crowd.props.pass(.seconds(35 * 86_400))
        #expect(crowd.due(5).changed.isEmpty)
        crowd.props.pass(.seconds(1))
        #expect(crowd[5].known(crowd.props).isEmpty, "an old token wakes nobody, dropped or not")
        crowd.props.pass(.seconds(86_400))
        #expect(crowd.due(5).changed == [3])
        #expect(crowd[5].device.tokens.leaves.isEmpty)
        var schedule = GossipSchedule(now: UnixTime(seconds: 10_000_000))
        let isDue = schedule.mayPrune(at: UnixTime(seconds: 1_000_000))
        #expect(isDue, "a clock that was set back does not put it off")
    }

    @Test("Switching off takes every token back, sends nothing twice, and still wakes others")
    func optOut() throws {
        for format in TokenFormat.allCases {
            let crowd = try Crowd(format, seed: 8)
            try crowd.join(3)
            try crowd.join(5)
            crowd.props.pass(.seconds(1))
            let due = crowd.optOut(3)
            #expect(due.events.map(\.kind) == [format == .seed ? 450 : 449])
            try crowd.spread(due.events, from: 3)
            #expect(crowd[5].known(crowd.props) == [5: 1])
            #expect(crowd[3].known(crowd.props) == [5: 1])
            let again = crowd.optOut(3)
            #expect(again.events.isEmpty && crowd[3].device.isOptedOut)
            crowd.props.pass(.seconds(36 * 86_400))
            let said = crowd.due(3).events.filter { $0.kind != NostrKind.tokenList }
            #expect(said.isEmpty, "who is out renews nothing, and still answers")
        }
    }

    @Test("A device that never registered says nothing at all")
    func neverRegistered() throws {
        let crowd = try Crowd(.pushV1, seed: 9, platform: .desktop)
        let due = crowd.optOut(3)
        #expect(due.events.isEmpty && due.changed.isEmpty)
        let token = try DeviceTarget(.apns, token: Self.apple)
        #expect(throws: MarmotError(.foreignPushService)) {
            try crowd.register(3, token, .joined)
        }
    }

    @Test("An Apple device refuses an FCM token, and an Android device one of APNs, in every format")
    func nativeOnly() throws {
        for format in TokenFormat.allCases {
            let apple = try Crowd(format, platform: .apple)
            let fcm = try DeviceTarget(.fcm, token: Secret("fcm-token".utf8))
            #expect(throws: MarmotError(.foreignPushService)) {
                try apple.register(3, fcm, .joined)
            }
            #expect(apple[3].device.tokens.leaves.isEmpty)
            let android = try Crowd(format, platform: .android)
            let apns = try DeviceTarget(.apns, token: Self.apple)
            #expect(throws: MarmotError(.foreignPushService)) {
                try android.register(3, apns, .joined)
            }
            #expect(try !android.register(3, fcm, .joined).events.isEmpty)
        }
    }

    @Test("A token that the format has no room for is refused before anything is said")
    func tooLong() throws {
        let crowd = try Crowd(.mip05Short)
        let long = try DeviceTarget(.apns, token: crowd.props.bytes(218))
        #expect(throws: MarmotError(.tooMuchContent)) {
            try crowd.register(3, long, .joined)
        }
        #expect(crowd[3].device.tokens.leaves.isEmpty)
    }

    @Test("Nobody speaks for another: the author must be the member of the leaf that MLS proved")
    func impersonation() throws {
        let crowd = try Crowd(.seed, seed: 10)
        try crowd.join(3)
        let token = try crowd.props.token(.seed, to: crowd.server.publicKey)
        let forged = GossipEvent.update(
            [token], author: crowd[3].pair.publicKey, at: crowd.props.now.wall.seconds)
        let receipt = crowd.hear(5, forged, from: 7)
        #expect(receipt.ignored == MarmotError(.senderMismatch) && receipt.changed.isEmpty)
        let outside = crowd.hear(5, forged, from: 9)
        #expect(outside.ignored == MarmotError(.senderMismatch))
        let removal = GossipEvent.removal(
            .seed, author: crowd[7].pair.publicKey, at: crowd.props.now.wall.seconds)
        _ = crowd.hear(5, removal, from: 7)
        #expect(crowd[5].known(crowd.props) == [3: 1], "a removal takes back the sender's own alone")
    }

    @Test("MLS order decides between two messages of a leaf, not their dates and not their arrival")
    func order() throws {
        let crowd = try Crowd(.seed, seed: 11)
        let author = crowd[3].pair.publicKey
        let old = try crowd.props.token(.seed, to: crowd.server.publicKey)
        let new = try crowd.props.token(.seed, to: crowd.server.publicKey)
        let earlier = GroupMessage(
            GossipEvent.update([old], author: author, at: 2_000_000_000), senderLeaf: 3,
            order: MessageOrder(epoch: 4, index: 9))
        let later = GroupMessage(
            GossipEvent.update([new], author: author, at: 1_000_000_000), senderLeaf: 3,
            order: MessageOrder(epoch: 5, index: 0))
        for message in [later, earlier, later] {
            crowd.receive(5, message)
        }
        let kept = try #require(crowd[5].device.tokens.leaves[3]?.tokens)
        #expect(kept.count == 1 && kept[0].isSame(as: new))
    }

    @Test("A removal outlasts a late message and hearsay; a later word of the owner ends it")
    func removalHolds() throws {
        let crowd = try Crowd(.seed, seed: 12)
        let author = crowd[3].pair.publicKey
        let at = crowd.props.now.wall.seconds
        let token = try crowd.props.token(.seed, to: crowd.server.publicKey)
        let early = crowd.props.message(GossipEvent.update([token], author: author, at: at), from: 3)
        let removal = crowd.props.message(GossipEvent.removal(.seed, author: author, at: at), from: 3)
        let late = crowd.props.message(GossipEvent.update([token], author: author, at: at), from: 3)
        let list = GossipEvent.lists(
            [ListedToken(leaf: 3, token: token)], answering: GossipReference(id: early.event.id, nonce: nil),
            .seed, author: crowd[7].pair.publicKey, at: at)
        func take(_ message: GroupMessage) {
            crowd.receive(5, message)
        }
        take(removal)
        take(early)
        take(crowd.props.message(list[0], from: 7))
        #expect(crowd[5].known(crowd.props).isEmpty)
        take(late)
        #expect(crowd[5].known(crowd.props) == [3: 1])
    }

    @Test("A leaf may take back one of several tokens, which does not make the others younger")
    func partialRemoval() throws {
        let crowd = try Crowd(.seed, seed: 13)
        let author = crowd[3].pair.publicKey
        let tokens = try (0..<3).map { _ in try crowd.props.token(.seed, to: crowd.server.publicKey) }
        try crowd.spread(
            [GossipEvent.update(tokens, author: author, at: crowd.props.now.wall.seconds)], from: 3)
        let since = crowd[5].device.tokens.leaves[3]?.addedAt
        crowd.props.pass(.seconds(86_400))
        let hex = tokens[1].box.array.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        let removal = NostrEvent.rumor(
            kind: 450, createdAt: 1, tags: [["token", hex]], content: Secret([]), author: author)
        try crowd.spread([removal], from: 3)
        let left = try #require(crowd[5].device.tokens.leaves[3])
        #expect(left.tokens.count == 2 && !left.tokens.contains { $0.isSame(as: tokens[1]) })
        #expect(left.addedAt == since)
    }

    @Test("After MLS Remove nothing of the leaf is left, and the next member of that leaf starts anew")
    func leafReuse() throws {
        for format in TokenFormat.allCases {
            let crowd = try Crowd(format, seed: 14)
            try crowd.join(3)
            #expect(crowd.removed(5, leaves: [3, 9]).changed == [3])
            #expect(crowd[5].known(crowd.props).isEmpty)
            // Even without word of the removal, tokens of a former member of the leaf wake nobody.
            try crowd.join(7)
            let successor = try crowd.props.pair()
            crowd[5].view.members[7] = successor.publicKey
            #expect(crowd[5].known(crowd.props).isEmpty)
            crowd.props.pass(.seconds(86_400))
            #expect(crowd.due(5).changed == [7])
        }
    }

    @Test("Records of push-v1: one from the future, of no member, or for another group is refused alone")
    func credibility() throws {
        let crowd = try Crowd(.pushV1, seed: 15)
        let owner = crowd[3].pair
        let token = try crowd.props.token(.pushV1, to: crowd.server.publicKey)
        let now = crowd.props.now.wall.milliseconds
        func record(_ leaf: UInt32, _ stamp: Int64, _ group: [UInt8]) -> PushRecord {
            let key = PushRecord.Key(
                member: owner.publicKey, leaf: leaf, platform: .apns, server: crowd.server.publicKey)
            return OwnerProof.sign(
                key, fingerprint: Array(repeating: 1, count: 12), token: token, ownerTimestamp: stamp,
                group: group, by: owner, auxiliary: Array(repeating: 0, count: 32))
        }
        let group = crowd[3].view.groupID
        let event = GossipEvent.records(
            [
                record(3, now, group), record(3, now + 3_600_001, group), record(7, now, group),
                record(9, now, group), record(3, now + 1, [1])
            ],
            author: owner.publicKey, at: now / 1000)
        let receipt = crowd.hear(5, event, from: 3)
        #expect(receipt.refused == 4 && receipt.changed == [3])
        #expect(crowd[5].device.tokens.leaves[3]?.records.map(\.ownerTimestamp) == [now])
    }

    @Test("A leaf's records are bounded, and a known one still gives way to a greater")
    func recordBound() throws {
        let crowd = try Crowd(.pushV1, seed: 16)
        let owner = crowd[3].pair
        let group = crowd[3].view.groupID
        func record(_ server: XOnlyKey, _ stamp: Int64) throws -> PushRecord {
            let key = PushRecord.Key(member: owner.publicKey, leaf: 3, platform: .apns, server: server)
            return OwnerProof.sign(
                key, fingerprint: Array(repeating: 1, count: 12),
                token: try crowd.props.token(.pushV1, to: server), ownerTimestamp: stamp, group: group,
                by: owner, auxiliary: Array(repeating: 0, count: 32))
        }
        let servers = try (0..<10).map { _ in try crowd.props.pair().publicKey }
        let first = GossipEvent.records(
            try servers.map { try record($0, 1000) }, author: owner.publicKey, at: 1)
        _ = crowd.hear(5, first, from: 3)
        #expect(crowd[5].device.tokens.leaves[3]?.records.count == MarmotLimits.recordsOfLeaf)
        let second = GossipEvent.records([try record(servers[0], 2000)], author: owner.publicKey, at: 1)
        #expect(crowd.hear(5, second, from: 3).changed == [3])
    }

    @Test("A device whose format changed takes back what it said in the old one")
    func migration() throws {
        let crowd = try Crowd(.mip05Long, seed: 17)
        try crowd.join(3)
        let settings = MarmotLeaf.Settings(
            platform: .apple, server: crowd.server.publicKey, format: .pushV1)
        crowd[3].device = MarmotLeaf(
            settings, identity: crowd[3].pair, tokens: crowd[3].device.tokens, now: crowd.props.now.wall)
        crowd.props.pass(.seconds(1))
        let target = try DeviceTarget(.apns, token: Self.apple)
        let due = try crowd.register(3, target, .started)
        #expect(due.events.map(\.kind) == [449, 447])
        try crowd.spread(due.events, from: 3)
        #expect(crowd[5].known(crowd.props) == [3: 1])
        #expect(crowd[5].device.tokens.leaves[3]?.tokens.first?.format == .pushV1)
    }

    @Test("One's own words coming back change nothing")
    func echo() throws {
        let crowd = try Crowd(.seed, seed: 18)
        let events = try crowd.join(3)
        let receipt = crowd.hear(3, events[0], from: 3)
        #expect(receipt.changed.isEmpty && receipt.ignored == nil)
        #expect(crowd[3].device.schedule.pending.isEmpty)
    }

    @Test("The nearest deadline is an answer's, then the day's end, and never lies in the past by date alone")
    func deadlines() throws {
        let crowd = try Crowd(.seed, seed: 19)
        let quiet = crowd[0].device.nextDeadline(from: crowd.props.now)
        #expect(quiet == crowd.props.now.instant + .seconds(86_400))
        try crowd.join(3)
        let asked = crowd[0].device.nextDeadline(from: crowd.props.now)
        #expect(asked <= crowd.props.now.instant + .seconds(2))
        let later = crowd.props.now.with(crowd.props.now.wall + .seconds(40 * 86_400))
        #expect(crowd[3].device.nextDeadline(from: later) == later.instant)
    }
}
