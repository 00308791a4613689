import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

/// What each party cannot learn, as the specification says it ("Privacy Properties"): looked for in every byte
/// that the party gets. What an endless flow of them tells by time and size stands in `docs/privacy/`.
@Suite("Marmot privacy")
struct MarmotPushPrivacyTests {
    /// One group with everything that nobody else should see, and all that its members made.
    private struct Scene {
        var crowd: Crowd
        var phones: [UInt32: Secret] = [:]
        var gossip: [NostrEvent] = []
        var triggers: [MarmotOriginRoutine.Trigger] = []

        init(_ format: TokenFormat, seed: UInt64, notifications: Int = 1) throws {
            crowd = try Crowd(format, seed: seed)
            for leaf in [UInt32(3), 5, 7] {
                phones[leaf] = crowd.props.bytes(32)
                gossip += try crowd.join(leaf, token: phones[leaf])
            }
            var directory = MarmotOriginRoutine.Directory()
            directory.lists[crowd.server.publicKey] = try RelayList(
                RelayList.event(
                    relays: ["wss://inbox.example.org"], at: 1, by: crowd.server,
                    auxiliary: Array(repeating: 0, count: 32)))
            let tokens = MarmotOriginRoutine.choose(
                from: crowd[3].device.tokens, in: crowd[3].view, sender: crowd[3].pair.publicKey,
                now: crowd.props.now.wall)
            for _ in 0..<notifications {
                triggers += try MarmotOriginRoutine(directory)
                    .notify(tokens, now: crowd.props.now.wall, using: &crowd.props.random).triggers
            }
        }

        /// Keys of members and the group's id, as bytes and as hex.
        var identities: [[UInt8]] {
            let raw = crowd.members.values.map(\.pair.publicKey.bytes) + [crowd[3].view.groupID]
            return raw + raw.map { hex($0) }
        }

        var deviceTokens: [[UInt8]] {
            let raw = phones.values.map(\.array)
            return raw + raw.map { hex($0) }
        }

        private func hex(_ bytes: [UInt8]) -> [UInt8] {
            bytes.flatMap { byte in
                [byte >> 4, byte & 15].map { $0 < 10 ? 0x30 + $0 : 0x57 + $0 }
            }
        }

        /// Everything that the server can make readable with its key: the seal, the trigger, the tokens.
        func seenByServer() throws -> [[UInt8]] {
            try triggers.flatMap { trigger -> [[UInt8]] in
                let text = try NIP44.decrypt(
                    trigger.wrap.content, key: NIP44.conversationKey(crowd.server, trigger.wrap.pubkey))
                let inner = try GiftWrap.unwrap(trigger.wrap, with: crowd.server).event
                return [trigger.wrap.serialized().array, text.array, inner.serialized().array]
            }
        }

        func boxes(_ trigger: MarmotOriginRoutine.Trigger) throws -> [[UInt8]] {
            let inner = try GiftWrap.unwrap(trigger.wrap, with: crowd.server).event
            return try TriggerContent(reading: inner).chunks.map(\.array)
        }
    }

    private static func contains(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
        guard needle.count <= bytes.count else { return false }
        return (0...bytes.count - needle.count).contains {
            bytes[$0..<$0 + needle.count].elementsEqual(needle)
        }
    }

    @Test(
        "The server cannot learn who sent, who receives, or which group it was",
        arguments: TokenFormat.allCases)
    func serverLearnsNobody(_ format: TokenFormat) throws {
        let scene = try Scene(format, seed: 61)
        for seen in try scene.seenByServer() {
            for identity in scene.identities { #expect(!Self.contains(seen, identity)) }
        }
        // What it does get is a list of tokens, with nothing that says whose they are.
        let inner = try GiftWrap.unwrap(scene.triggers[0].wrap, with: scene.crowd.server).event
        #expect(inner.tags == format.triggerTags)
    }

    @Test("The server cannot link two triggers by any key, nor a trigger to its sender's account")
    func unlinkableTriggers() throws {
        let scene = try Scene(.pushV1, seed: 62, notifications: 8)
        var keys: Set<XOnlyKey> = []
        for trigger in scene.triggers {
            let author = try GiftWrap.unwrap(trigger.wrap, with: scene.crowd.server).event.pubkey
            keys.formUnion([trigger.wrap.pubkey, author])
        }
        #expect(keys.count == 2 * scene.triggers.count)
        #expect(scene.crowd.members.values.allSatisfy { !keys.contains($0.pair.publicKey) })
    }

    @Test(
        "Relays cannot learn the sender, the receivers, the group or which tokens are meant",
        arguments: TokenFormat.allCases)
    func relaysLearnNothing(_ format: TokenFormat) throws {
        let scene = try Scene(format, seed: 63, notifications: 2)
        for trigger in scene.triggers {
            let seen = trigger.wrap.serialized().array
            for secret in scene.identities + scene.deviceTokens + (try scene.boxes(trigger)) {
                #expect(!Self.contains(seen, secret))
            }
            // The addressee is all that it names.
            #expect(trigger.wrap.tags == [["p", scene.crowd.server.publicKey.hex]])
            #expect(trigger.wrap.kind == NostrKind.giftWrap)
            #expect(throws: MarmotError.self) {
                try GiftWrap.open(trigger.wrap, with: scene.crowd[5].pair)
            }
        }
        // The same tokens twice look like two other events.
        #expect(scene.triggers[0].wrap.content.array != scene.triggers[1].wrap.content.array)
        #expect(scene.triggers[0].wrap.createdAt != scene.crowd.props.now.wall.seconds)
    }

    @Test("Relays cannot tell one receiver from several in the padded formats: sizes move in steps")
    func sizes() throws {
        for format in [TokenFormat.seed, .mip05Short] {
            var sizes: [Int: Set<Int>] = [:]
            for count in [1, 2, 3] {
                var props = Props(seed: 64 + UInt64(count))
                let server = try props.pair()
                var directory = MarmotOriginRoutine.Directory()
                directory.lists[server.publicKey] = try RelayList(
                    RelayList.event(
                        relays: ["wss://inbox.example.org"], at: 1, by: server,
                        auxiliary: Array(repeating: 0, count: 32)))
                for _ in 0..<12 {
                    let tokens = try (0..<count).map { _ in
                        try props.token(format, to: server.publicKey)
                    }
                    let sent = try MarmotOriginRoutine(directory)
                        .notify(tokens, now: props.now.wall, using: &props.random)
                    sizes[count, default: []].insert(sent.triggers[0].wrap.content.count)
                }
            }
            let common = try #require(sizes[1]).intersection(try #require(sizes[2]))
            #expect(!common.intersection(try #require(sizes[3])).isEmpty, "\(format)")
        }
    }

    @Test(
        "One device in two groups gives boxes with nothing in common, which only the server can open",
        arguments: TokenFormat.allCases)
    func unlinkableTokens(_ format: TokenFormat) throws {
        let crowd = try Crowd(format, seed: 65)
        let phone = crowd.props.bytes(32)
        var boxes: [[UInt8]] = []
        for number in UInt8(0)..<6 {
            var member = crowd[3]
            member.view.groupID = [number]
            _ = try member.register(try DeviceTarget(.apns, token: phone), .joined, &crowd.props)
            let token = try #require(member.device.tokens.leaves[3]?.tokens.first)
            boxes.append(token.box.array)
            #expect(try TokenBox.decrypt(token.box, format, with: crowd.server).token == phone)
            #expect(throws: MarmotError(.tokenDoesNotOpen)) {
                try TokenBox.decrypt(token.box, format, with: crowd[5].pair)
            }
            #expect(!Self.contains(token.box.array, phone.array))
        }
        #expect(Set(boxes.map { Array($0.prefix(32)) }).count == boxes.count, "one key for each box")
        #expect(Set(boxes.map { Array($0[32..<44]) }).count == boxes.count)
        let pieces = boxes.flatMap { box in
            stride(from: 0, to: box.count - 8, by: 8).map { Array(box[$0..<$0 + 8]) }
        }
        #expect(Set(pieces).count == pieces.count)
    }

    @Test("Members cannot learn each other's device tokens from gossip", arguments: TokenFormat.allCases)
    func membersLearnNoToken(_ format: TokenFormat) throws {
        let scene = try Scene(format, seed: 66)
        for event in scene.gossip {
            let seen = event.serialized().array
            for token in scene.deviceTokens { #expect(!Self.contains(seen, token)) }
            #expect(event.signature == nil, "what leaks from a group proves nothing")
        }
    }

    @Test("In the padded formats a box does not tell Apple from Google, nor how long the token is")
    func paddedBoxes() throws {
        var props = Props(seed: 67)
        let server = try props.pair().publicKey
        for format in [TokenFormat.mip05Short, .mip05Long, .pushV1] {
            var sizes: Set<Int> = []
            for target in [
                try DeviceTarget(.apns, token: props.bytes(32)),
                try DeviceTarget(.fcm, token: Secret(String(repeating: "a", count: 163).utf8))
            ] {
                let box = try TokenBox.encrypt(
                    target, to: server, format, ephemeral: props.pair(), nonce: props.bytes(12).array,
                    padding: props.bytes(TokenBox.paddingBytes(target, format) ?? 0).array)
                sizes.insert(box.count)
            }
            #expect(sizes.count == 1)
        }
    }

    @Test("Nothing of a token or a key comes out of an interpolation, a description or a mirror")
    func descriptions() throws {
        let scene = try Scene(.pushV1, seed: 68)
        let texts = [
            "\(scene.crowd[3].device)", String(reflecting: scene.crowd[3].device),
            String(reflecting: scene.triggers[0]), "\(scene.gossip[0])"
        ]
        for text in texts {
            for token in scene.deviceTokens { #expect(!Self.contains(Array(text.utf8), token)) }
            let secret = scene.crowd[3].pair.secret.array.map { String($0) }.joined(separator: ", ")
            #expect(!text.contains(secret))
        }
    }
}
