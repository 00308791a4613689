@testable import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("Marmot origin")
struct MarmotOriginTests {
    private static let relay = "wss://inbox.example.org"

    private final class Stage {
        var props: Props
        let server: Secp256k1KeyPair
        var directory = MarmotOriginRoutine.Directory()

        init(seed: UInt64) throws {
            props = Props(seed: seed)
            server = try props.pair()
            try list([MarmotOriginTests.relay])
        }

        func list(_ relays: [String], of pair: Secp256k1KeyPair? = nil) throws {
            let pair = pair ?? server
            let event = RelayList.event(
                relays: relays, at: 1, by: pair, auxiliary: Array(repeating: 0, count: 32))
            directory.lists[pair.publicKey] = try RelayList(event)
        }

        func tokens(
            _ format: TokenFormat, _ count: Int, device: Int = 32, hint: String? = nil
        ) throws -> [GossipToken] {
            try (0..<count).map { _ in
                try props.token(format, to: server.publicKey, device: props.bytes(device), hint: hint)
            }
        }

        func notify(
            _ tokens: [GossipToken], _ path: GiftWrap.Path = .sealed
        ) throws -> MarmotOriginRoutine.Notification {
            try MarmotOriginRoutine(directory, seedPath: path)
                .notify(tokens, now: props.now.wall, using: &props.random)
        }
    }

    /// What the server finds in a trigger.
    private static func open(
        _ trigger: MarmotOriginRoutine.Trigger, _ pair: Secp256k1KeyPair
    ) throws -> (items: Int, targets: [DeviceTarget], inner: GiftWrap.Opened) {
        let frame = NostrMessage.FromClient.event(trigger.wrap).serialized()
        #expect(frame.count <= MarmotLimits.commonFrameBytes)
        let opened = try GiftWrap.unwrap(trigger.wrap, with: pair)
        let content = try TriggerContent(reading: opened.event)
        #expect(content.format == trigger.format && content.unusable == 0)
        // A decoy opens for nobody; everything else must.
        let targets = content.chunks.compactMap { try? TokenBox.decrypt($0, content.format, with: pair) }
        return (content.count, targets, opened)
    }

    @Test(
        "Every token arrives once at its server, among decoys by its format's rule",
        arguments: TokenFormat.allCases)
    func wholeWay(_ format: TokenFormat) throws {
        let stage = try Stage(seed: 31)
        var extra: Set<Int> = []
        for count in [1, 4, 12] {
            for _ in 0..<8 {
                let tokens = try stage.tokens(format, count, hint: format == .pushV1 ? Self.relay : nil)
                let sent = try stage.notify(tokens)
                #expect(sent.unreachable.isEmpty && sent.triggers.count == 1)
                let opened = try Self.open(sent.triggers[0], stage.server)
                #expect(opened.targets.count == count)
                if format == .seed { #expect(opened.items >= 10) }
                let least = format == .seed ? max(10, count + 2) : count + format.decoys.lowerBound
                #expect(opened.items >= least)
                #expect(opened.items <= max(format.leastItems, count + format.decoys.upperBound))
                if count == 12 { extra.insert(opened.items - count) }
            }
        }
        #expect(extra.count > 1, "the number of decoys is random")
    }

    @Test("Decoys have the sizes of real tokens and are no token that anybody gave")
    func decoySizes() throws {
        let stage = try Stage(seed: 32)
        let tokens =
            try stage.tokens(.seed, 2, device: 32) + stage.tokens(.seed, 2, device: 142)
        let sent = try stage.notify(tokens)
        let opened = try GiftWrap.unwrap(sent.triggers[0].wrap, with: stage.server)
        let sizes = Set(tokens.map(\.box.count))
        let chunks = try TriggerContent(reading: opened.event).chunks
        #expect(chunks.allSatisfy { sizes.contains($0.count) })
        let places = chunks.indices.filter { at in tokens.contains { $0.box == chunks[at] } }
        #expect(places.count == 4 && places != [0, 1, 2, 3], "shuffled")
    }

    @Test("A full batch really fits a frame of 64 KiB, and its size is reckoned to the byte")
    func frames() throws {
        let stage = try Stage(seed: 33)
        for format in TokenFormat.allCases {
            for count in [1, 9, format.batch] {
                let boxes = try stage.tokens(format, count, device: 142).map(\.box)
                for path in [GiftWrap.Path.sealed] + (format == .seed ? [.direct] : []) {
                    let frame = try Self.frame(boxes, format, path, stage)
                    let bytes = boxes.reduce(0) { $0 + $1.count }
                    let size = TriggerFrame.size(format, tokens: count, bytes: bytes, path)
                    #expect(size?.frame == frame.count, "\(format) \(count) \(path)")
                    #expect(frame.count <= MarmotLimits.commonFrameBytes)
                }
            }
        }
    }

    private static func frame(
        _ boxes: [Secret], _ format: TokenFormat, _ path: GiftWrap.Path, _ stage: Stage
    ) throws -> Secret {
        let author = try stage.props.pair()
        let content = try TriggerContent(format, boxes).serialized()
        let layer = GiftWrap.Layer(
            createdAt: 1_767_225_600, nonce: stage.props.bytes(32).array,
            auxiliary: stage.props.bytes(32).array)
        let inner: NostrEvent
        if path == .sealed {
            let rumor = NostrEvent.rumor(
                kind: 446, createdAt: 1_767_225_600, tags: format.triggerTags, content: content,
                author: author.publicKey)
            inner = try GiftWrap.seal(rumor, by: author, to: stage.server.publicKey, layer)
        } else {
            inner = .signed(
                kind: 446, createdAt: 1_767_225_600, tags: format.triggerTags, content: content, by: author,
                auxiliary: layer.auxiliary)
        }
        let wrap = try GiftWrap.wrap(inner, by: stage.props.pair(), to: stage.server.publicKey, layer)
        return NostrMessage.FromClient.event(wrap).serialized()
    }

    @Test("Many tokens go into several triggers, none of which a relay would refuse, and all arrive")
    func batches() throws {
        for format in TokenFormat.allCases {
            let stage = try Stage(seed: 34)
            let tokens = try stage.tokens(format, 130, device: 142)
            let sent = try stage.notify(tokens)
            var found = 0
            var decoys: Set<Int> = []
            for trigger in sent.triggers {
                let opened = try Self.open(trigger, stage.server)
                #expect(opened.items <= format.batch)
                found += opened.targets.count
                let more = opened.items - opened.targets.count
                // The last may be short of the seed text's ten.
                let most = max(format.decoys.upperBound, format.leastItems - opened.targets.count)
                #expect((format.decoys.lowerBound...most).contains(more), "\(format): \(more) decoys")
                decoys.insert(more)
            }
            #expect(found == 130)
            let counts = [format.decoys.lowerBound, format.decoys.upperBound].map {
                (130 + format.batch - $0 - 1) / (format.batch - $0)
            }
            #expect((counts[0]...counts[1]).contains(sent.triggers.count), "full but for their decoys")
            if sent.triggers.count > 3 { #expect(decoys.count > 1, "each has its own number") }
        }
    }

    @Test("Where a relay takes three tokens at a time, each trigger has one real and two decoys")
    func fewAtATime() throws {
        let stage = try Stage(seed: 44)
        stage.directory.information[Self.relay] = RelayInformation()
        var size = 0
        // The least frame that holds three.
        for bytes in stride(from: 4_000, to: 40_000, by: 100) {
            var information = RelayInformation()
            information.maxMessageBytes = bytes
            let frame = TriggerFrame([information])
            if frame.takes(.pushV1, tokens: 3, bytes: 3 * 1_084, .sealed),
                !frame.takes(.pushV1, tokens: 4, bytes: 4 * 1_084, .sealed)
            {
                size = bytes
                break
            }
        }
        stage.directory.information[Self.relay]?.maxMessageBytes = size
        let sent = try stage.notify(try stage.tokens(.pushV1, 4))
        #expect(sent.triggers.count == 4)
        for trigger in sent.triggers {
            let opened = try Self.open(trigger, stage.server)
            #expect(opened.items == 3 && opened.targets.count == 1)
        }
    }

    @Test("Unpadded tokens of the greatest length fit too, in smaller batches")
    func longTokens() throws {
        let stage = try Stage(seed: 35)
        let sent = try stage.notify(try stage.tokens(.seed, 20, device: 4096))
        #expect(sent.triggers.count > 1)
        var found = 0
        for trigger in sent.triggers { found += try Self.open(trigger, stage.server).targets.count }
        #expect(found == 20)
    }

    @Test("A relay's own limit makes batches smaller; one that takes no token at all is left out")
    func relayLimits() throws {
        let stage = try Stage(seed: 36)
        let small = "wss://small.example.org"
        let tiny = "wss://tiny.example.org"
        let worker = "wss://work.example.org"
        try stage.list([Self.relay, small, tiny, worker])
        stage.directory.information[small] = RelayInformation()
        stage.directory.information[small]?.maxMessageBytes = 40_960
        stage.directory.information[tiny] = RelayInformation()
        stage.directory.information[tiny]?.maxContentCharacters = 2_000
        stage.directory.information[worker] = RelayInformation()
        stage.directory.information[worker]?.minPowDifficulty = 20
        let sent = try stage.notify(try stage.tokens(.mip05Long, 15))
        #expect(sent.triggers.count > 1)
        var found = 0
        for trigger in sent.triggers {
            #expect(trigger.relays == [Self.relay, small])
            #expect(NostrMessage.FromClient.event(trigger.wrap).serialized().count <= 40_960)
            found += try Self.open(trigger, stage.server).targets.count
        }
        #expect(found == 15)
    }

    @Test("No document of one relay multiplies the triggers of all", arguments: TokenFormat.allCases)
    func narrow(_ format: TokenFormat) throws {
        let stage = try Stage(seed: 45)
        let hostile = "wss://hostile.example.org"
        let tokens = try stage.tokens(format, 60)
        let alone = try stage.notify(tokens).triggers.count
        try stage.list([Self.relay, hostile])
        stage.directory.information[hostile] = RelayInformation()
        var isTaken: Set<Bool> = []
        // From less than one token to more than a full trigger; both limits.
        for limit in stride(from: 1_000, through: 66_000, by: 2_900) {
            for isContent in [false, true] {
                stage.directory.information[hostile]?.maxMessageBytes = isContent ? nil : limit
                stage.directory.information[hostile]?.maxContentCharacters = isContent ? limit : nil
                let sent = try stage.notify(tokens).triggers
                #expect(sent.count <= 3 * alone, "\(limit)")
                #expect(sent.allSatisfy { $0.relays.contains(Self.relay) })
                isTaken.insert(sent.allSatisfy { $0.relays.contains(hostile) })
                #expect(sent.count <= alone + 1 || sent.allSatisfy { $0.relays.contains(hostile) })
            }
        }
        #expect(isTaken == [true, false])
    }

    @Test("Where a server's relays all take little, the widest is used, and a hint pushes none of them out")
    func allNarrow() throws {
        let stage = try Stage(seed: 46)
        let (less, hint) = ("wss://less.example.org", "wss://hint.example.org")
        for (relay, limit) in [(Self.relay, 20_000), (less, 8_000)] {
            stage.directory.information[relay] = RelayInformation()
            stage.directory.information[relay]?.maxMessageBytes = limit
        }
        // Hints name all three; the server's list has those that take little.
        var tokens: [GossipToken] = []
        for relay in [Self.relay, less, hint] { tokens += try stage.tokens(.pushV1, 10, hint: relay) }
        try stage.list([Self.relay, less])
        let listed = try stage.notify(tokens).triggers
        #expect(!listed.isEmpty && listed.allSatisfy { $0.relays == [Self.relay, hint] })
        // Nobody knows whose word counts: the one with room does.
        stage.directory.lists = [:]
        let hinted = try stage.notify(tokens).triggers
        #expect(hinted.allSatisfy { $0.relays == [hint] } && hinted.count < listed.count)
        // What the app was built with counts like a list.
        stage.directory.fallbacks[stage.server.publicKey] = [Self.relay, less]
        #expect(try stage.notify(tokens).triggers.allSatisfy { $0.relays == [Self.relay, hint] })
        // A group that fits is sent to all that take it whole.
        stage.directory.fallbacks = [:]
        let few = try [Self.relay, hint].map { try stage.tokens(.seed, 1, hint: $0)[0] }
        try stage.list([Self.relay, hint])
        #expect(try stage.notify(few).triggers.map(\.relays) == [[Self.relay, hint]])
        try stage.list([less])
        #expect(try stage.notify(try stage.tokens(.seed, 30)).triggers.allSatisfy { $0.relays == [less] })
    }

    @Test("A relay that takes no old events gets none, and no wrap is dated ahead")
    func dates() throws {
        let stage = try Stage(seed: 37)
        let now = stage.props.now.wall.seconds
        var wraps: [Int64] = []
        var seals: [Int64] = []
        for _ in 0..<12 {
            let sent = try stage.notify(try stage.tokens(.seed, 1))
            let opened = try Self.open(sent.triggers[0], stage.server)
            #expect(opened.inner.event.createdAt == now, "the trigger itself bears the true time")
            wraps.append(sent.triggers[0].wrap.createdAt)
            seals.append(try Self.seal(sent.triggers[0].wrap, stage.server).createdAt)
        }
        for dates in [wraps, seals] {
            #expect(dates.allSatisfy { $0 <= now && $0 >= now - 172_800 } && Set(dates).count > 10)
        }
        stage.directory.information[Self.relay] = RelayInformation()
        stage.directory.information[Self.relay]?.createdAtLowerLimit = .seconds(60)
        for _ in 0..<12 {
            let sent = try stage.notify(try stage.tokens(.seed, 1))
            #expect(sent.triggers[0].wrap.createdAt >= now - 60)
        }
    }

    private static func seal(_ wrap: NostrEvent, _ pair: Secp256k1KeyPair) throws -> NostrEvent {
        let text = try NIP44.decrypt(wrap.content, key: NIP44.conversationKey(pair, wrap.pubkey))
        return try NostrEvent.parse(text, .rumor)
    }

    @Test("Where triggers go: hints first in push-v1, the list first in mip05, the list alone in seed")
    func addresses() throws {
        let hint = "wss://hint.example.org"
        for (format, hasList, expected) in [
            (TokenFormat.pushV1, true, [hint]), (.pushV1, false, [hint]), (.mip05Long, true, [Self.relay]),
            (.mip05Long, false, [hint]), (.seed, true, [Self.relay]), (.seed, false, [])
        ] {
            let stage = try Stage(seed: 38)
            if !hasList { stage.directory.lists = [:] }
            let tokens = try stage.tokens(format, 2, hint: format == .seed ? nil : hint)
            let sent = try stage.notify(tokens)
            #expect((sent.triggers.first?.relays ?? []) == expected, "\(format) \(hasList)")
            #expect(sent.unreachable.keys.contains(stage.server.publicKey) == expected.isEmpty)
        }
        // Without hints push-v1 takes the list; a hint that is no relay is none; an empty list is none.
        let stage = try Stage(seed: 39)
        #expect(try stage.notify(try stage.tokens(.pushV1, 1)).triggers[0].relays == [Self.relay])
        let odd = try stage.tokens(.pushV1, 1, hint: "https://x.example.org")
        #expect(try stage.notify(odd).triggers[0].relays == [Self.relay])
        try stage.list([])
        #expect(try stage.notify(try stage.tokens(.mip05Short, 1)).unreachable.count == 1)
    }

    @Test("One event holds tokens of one server and one format only")
    func grouping() throws {
        let stage = try Stage(seed: 40)
        let other = try stage.props.pair()
        try stage.list([Self.relay], of: other)
        var tokens = try stage.tokens(.seed, 3) + stage.tokens(.mip05Short, 2)
        for _ in 0..<4 { tokens.append(try stage.props.token(.seed, to: other.publicKey)) }
        tokens.append(tokens[0])
        let sent = try stage.notify(tokens)
        let counts = try sent.triggers.map {
            try Self.open($0, $0.server == other.publicKey ? other : stage.server).targets.count
        }
        #expect(counts == [3, 2, 4], "a token that is given twice is sent once")
        #expect(try stage.notify([]).triggers.isEmpty)
    }

    @Test("The direct way of the seed text is signed and unsealed; other formats are sealed all the same")
    func direct() throws {
        let stage = try Stage(seed: 41)
        let tokens = try stage.tokens(.seed, 2) + stage.tokens(.mip05Long, 2)
        let sent = try stage.notify(tokens, .direct)
        let paths = try sent.triggers.map { try Self.open($0, stage.server).inner.path }
        #expect(paths == [.direct, .sealed])
    }

    @Test("The sender's own devices, blank leaves and opted-out members are not chosen")
    func choosing() throws {
        let crowd = try Crowd(.seed, seed: 42)
        for leaf in Crowd.leaves { try crowd.join(leaf) }
        let sender = crowd[0].pair.publicKey
        func chosen(_ view: GroupDouble) -> Int {
            MarmotOriginRoutine.choose(
                from: crowd[0].device.tokens, in: view, sender: sender, now: crowd.props.now.wall
            ).count
        }
        #expect(chosen(crowd[0].view) == 3)
        var view = crowd[0].view
        view.members[7] = nil
        #expect(chosen(view) == 2)
        // A second device of the sender's account.
        var crowded = crowd[0].view
        crowded.members[9] = sender
        _ = crowd.members[0]!.device.tokens.replace(
            9, of: sender, with: [try crowd.props.token(.seed, to: crowd.server.publicKey)], nil,
            now: crowd.props.now.wall)
        #expect(chosen(crowded) == 3)
    }

    @Test("Of a group with too many tokens each leaf's first comes before any leaf's second")
    func crowded() throws {
        var props = Props(seed: 47)
        let (ours, theirs) = (try props.pair().publicKey, try props.pair().publicKey)
        let (own, many) = (try props.token(.pushV1, to: ours), try props.token(.pushV1, to: theirs))
        let leaves = UInt32(MarmotLimits.tokensOfWake - 1)
        var tokens = GroupTokens()
        for leaf in 0..<leaves {
            let said = leaf == 0 ? Array(repeating: many, count: MarmotLimits.tokensOfLeaf) : [own]
            _ = tokens.replace(leaf, of: ours, with: said, nil, now: props.now.wall)
        }
        let members = Dictionary(uniqueKeysWithValues: (0..<leaves).map { ($0, ours) })
        let chosen = MarmotOriginRoutine.choose(
            from: tokens, in: GroupDouble(ownLeaf: leaves, members: members), sender: theirs,
            now: props.now.wall)
        #expect(chosen.count == MarmotLimits.tokensOfWake)
        #expect(chosen.filter { $0.server == theirs }.count == 2, "one place was left")
    }
}
