import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

@Suite("Marmot gossip on the wire")
struct GossipTests {
    private static let now: Int64 = 1_767_225_600

    private struct Sample: Sendable, CustomTestStringConvertible {
        let name: String
        let event: NostrEvent
        var testDescription: String { name }
    }

    /// One event of every shape that ours write.
    private static func samples() throws -> [Sample] {
        var props = Props(seed: 41)
        let server = try props.pair().publicKey
        let owner = try props.pair()
        let author = owner.publicKey
        let seed = try props.token(.seed, to: server)
        let short = try props.token(.mip05Short, to: server)
        let long = try props.token(.mip05Long, to: server, hint: "wss://relay.example.org")
        let record = try Self.record(&props, server, owner)
        let removal = try Self.record(&props, server, owner, isRemoval: true)
        let request = GossipReference(
            id: Array(repeating: 7, count: 32), nonce: String(repeating: "a", count: 32))
        return [
            Sample(
                name: "seed 447",
                event: GossipEvent.request(
                    [seed, seed], nonce: String(repeating: "0", count: 32), author: author, at: now)),
            Sample(
                name: "seed 448",
                event: GossipEvent.lists(
                    [.init(leaf: 3, token: seed), .init(leaf: 7, token: seed)], answering: request, .seed,
                    author: author, at: now)[0]),
            Sample(name: "seed 449", event: GossipEvent.update([seed], author: author, at: now)),
            Sample(name: "seed 450", event: GossipEvent.removal(.seed, author: author, at: now)),
            Sample(
                name: "mip05-280 447",
                event: GossipEvent.request([short], nonce: nil, author: author, at: now)),
            Sample(
                name: "mip05-1084 447",
                event: GossipEvent.request([long], nonce: nil, author: author, at: now)),
            Sample(
                name: "mip05 448",
                event: GossipEvent.lists(
                    [.init(leaf: 3, token: short), .init(leaf: 7, token: long)], answering: request, .mip05,
                    author: author, at: now)[0]),
            Sample(name: "mip05 449", event: GossipEvent.removal(.mip05, author: author, at: now)),
            Sample(name: "push-v1 447", event: GossipEvent.records([record], author: author, at: now)),
            Sample(name: "push-v1 447, empty", event: GossipEvent.records([], author: author, at: now)),
            Sample(
                name: "push-v1 448",
                event: GossipEvent.recordLists([record, record], author: author, at: now)[0]),
            Sample(name: "push-v1 449", event: GossipEvent.recordRemovals([removal], author: author, at: now))
        ]
    }

    private static func record(
        _ props: inout Props, _ server: XOnlyKey, _ owner: Secp256k1KeyPair, isRemoval: Bool = false
    ) throws -> PushRecord {
        let token = try props.token(.pushV1, to: server, hint: "wss://relay.example.org")
        let key = PushRecord.Key(member: owner.publicKey, leaf: 3, platform: .apns, server: server)
        return OwnerProof.sign(
            key, fingerprint: Array(repeating: 9, count: 12), token: isRemoval ? nil : token,
            ownerTimestamp: 1_767_225_600_000, group: [1, 2, 3], by: owner,
            auxiliary: Array(repeating: 0, count: 32))
    }

    /// What was read, written again.
    static func rewritten(_ event: NostrEvent) throws -> NostrEvent {
        let author = event.pubkey
        let at = event.createdAt
        switch try Gossip(reading: event) {
        case .request(_, let own, let reference):
            return GossipEvent.request(own, nonce: reference.nonce, author: author, at: at)
        case .list(let profile, let listed, let reference, _):
            return GossipEvent.lists(listed, answering: reference, profile, author: author, at: at)[0]
        case .update(let own): return GossipEvent.update(own, author: author, at: at)
        case .removal:
            let profile: GossipProfile = event.kind == NostrKind.tokenRemoval ? .seed : .mip05
            return GossipEvent.removal(profile, author: author, at: at)
        case .recordRequest: return GossipEvent.records([], author: author, at: at)
        case .records(let records, let isList):
            let records = try records.map { try #require($0) }
            if event.kind == NostrKind.tokenUpdateOrRemoval {
                return GossipEvent.recordRemovals(records, author: author, at: at)
            }
            return isList
                ? GossipEvent.recordLists(records, author: author, at: at)[0]
                : GossipEvent.records(records, author: author, at: at)
        }
    }

    @Test("Every shape that ours write is read, and written again byte for byte")
    func roundTrips() throws {
        for sample in try Self.samples() {
            let read = try NostrEvent.parse(sample.event.serialized(), .rumor)
            #expect(try Self.rewritten(read).id == sample.event.id, "\(sample.name)")
        }
    }

    @Test("A truncated event is refused at every length")
    func truncatedEvents() throws {
        for sample in try Self.samples() {
            let whole = sample.event.serialized()
            for count in stride(from: 0, to: whole.count, by: whole.count > 1000 ? 7 : 1) {
                let cut = whole.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                #expect(throws: MarmotError.self, "\(sample.name) at \(count)") {
                    try NostrEvent.parse(cut, .rumor)
                }
            }
        }
    }

    @Test("Truncated content of push-v1 is refused at every length")
    func truncatedContents() throws {
        for sample in try Self.samples() where sample.event.content.count > 0 {
            let content = sample.event.content
            for count in 1..<content.count {
                let cut = content.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                let event = NostrEvent.rumor(
                    kind: sample.event.kind, createdAt: Self.now, tags: sample.event.tags, content: cut,
                    author: sample.event.pubkey)
                #expect(throws: MarmotError.self, "\(sample.name) at \(count)") { try Gossip(reading: event) }
            }
        }
    }

    @Test("A token truncated at any length voids its event, and in a list of the seed text itself alone")
    func truncatedTokens() throws {
        for sample in try Self.samples() where sample.event.content.count == 0 {
            guard let first = sample.event.tags.firstIndex(where: { $0.first == "token" }) else { continue }
            let isList = sample.name == "seed 448"
            for cut in 0..<sample.event.tags[first][1].utf8.count {
                var tags = sample.event.tags
                tags[first][1] = String(tags[first][1].prefix(cut))
                let event = Self.rumor(sample.event.kind, tags, sample.event.pubkey)
                // An unpadded token tells no length: a shorter one is another one, which opens for nobody.
                let isShorterToken = sample.name.hasPrefix("seed") && cut.isMultiple(of: 2) && cut > 120
                if isShorterToken { continue }
                if isList {
                    guard case .list(_, let listed, _, let unusable) = try Gossip(reading: event) else {
                        Issue.record("no list")
                        return
                    }
                    #expect(listed.count == 1 && unusable == 1)
                } else {
                    #expect(throws: MarmotError.self, "\(sample.name) at \(cut)") {
                        try Gossip(reading: event)
                    }
                }
            }
        }
    }

    private static func rumor(_ kind: Int, _ tags: [[String]], _ author: XOnlyKey) -> NostrEvent {
        .rumor(kind: kind, createdAt: now, tags: tags, content: Secret([]), author: author)
    }

    @Test("A signature, a wrong id and another kind are refused whatever the content")
    func frame() throws {
        var props = Props(seed: 42)
        let pair = try props.pair()
        let token = try props.token(.seed, to: try props.pair().publicKey)
        let good = GossipEvent.request([token], nonce: nil, author: pair.publicKey, at: Self.now)
        let signed = NostrEvent.signed(
            kind: 447, createdAt: Self.now, tags: good.tags, content: Secret([]), by: pair,
            auxiliary: Array(repeating: 0, count: 32))
        #expect(throws: MarmotError(.malformedGossip)) { try Gossip(reading: signed) }
        let text = String(decoding: good.serialized().array, as: UTF8.self)
        let other = text.replacing("\"created_at\":\(Self.now)", with: "\"created_at\":\(Self.now + 1)")
        let moved = try NostrEvent.parse(Secret(other.utf8), .rumor)
        #expect(throws: MarmotError(.malformedGossip)) { try Gossip(reading: moved) }
        for kind in [9, 446, 451, 1059] {
            let event = Self.rumor(kind, good.tags, pair.publicKey)
            #expect(throws: MarmotError(.wrongKind)) { try Gossip(reading: event) }
        }
    }

    @Test("More tokens or records than allowed void the whole event before any signature is looked at")
    func bounds() throws {
        var props = Props(seed: 43)
        let owner = try props.pair()
        let server = try props.pair().publicKey
        let token = try props.token(.seed, to: server)
        let nine = GossipEvent.update(
            Array(repeating: token, count: MarmotLimits.tokensOfLeaf + 1), author: owner.publicKey,
            at: Self.now)
        #expect(throws: MarmotError(.tooLarge)) { try Gossip(reading: nine) }
        let record = try Self.record(&props, server, owner)
        for (count, isTaken) in [(32, true), (33, false)] {
            let event = GossipEvent.records(
                Array(repeating: record, count: count), author: owner.publicKey, at: Self.now)
            if isTaken {
                guard case .records(let records, false) = try Gossip(reading: event) else {
                    Issue.record("no records")
                    return
                }
                #expect(records.count == count)
            } else {
                #expect(throws: MarmotError(.tooLarge)) { try Gossip(reading: event) }
            }
        }
    }

    @Test("Hostile JSON in an event of push-v1 is refused")
    func hostileContents() throws {
        var props = Props(seed: 44)
        let author = try props.pair().publicKey
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        let contents = [
            "x", "[]", "{}", "null", #"{"v":1,"tokens":[]}"#, #"{"tokens":[]}"#,
            #"{"v":"marmot-push-v1","tokens":1}"#,
            #"{"v":"marmot-push-v2","tokens":[]}"#, #"{"v":"marmot-push-v1","x":\#(deep)}"#,
            #"{"v":"marmot-push-v1","tokens":[]} "# + "x"
        ]
        for content in contents {
            let event = NostrEvent.rumor(
                kind: 447, createdAt: Self.now, content: Secret(content.utf8), author: author)
            #expect(throws: MarmotError.self, "\(content.prefix(40))") { try Gossip(reading: event) }
        }
        let entries = #"{"v":"marmot-push-v1","tokens":[1,null,"x",[],{},{"leaf_index":-1}]}"#
        let event = NostrEvent.rumor(
            kind: 448, createdAt: Self.now, content: Secret(entries.utf8), author: author)
        guard case .records(let records, true) = try Gossip(reading: event) else {
            Issue.record("no records")
            return
        }
        #expect(records.count == 6 && records.allSatisfy { $0 == nil })
    }

    @Test("A long list is cut into events that a group message has room for, and none is lost")
    func longLists() throws {
        var props = Props(seed: 45)
        let owner = try props.pair()
        let server = try props.pair().publicKey
        let token = try props.token(.mip05Long, to: server, hint: "wss://relay.example.org")
        let listed = (0..<200).map { ListedToken(leaf: UInt32($0), token: token) }
        let reference = GossipReference(id: Array(repeating: 1, count: 32), nonce: nil)
        let events = GossipEvent.lists(
            listed, answering: reference, .mip05, author: owner.publicKey, at: Self.now)
        var leaves: [UInt32] = []
        for event in events {
            #expect(event.serialized().count <= 40 << 10)
            guard case .list(.mip05, let part, _, 0) = try Gossip(reading: event) else { continue }
            leaves += part.map(\.leaf)
        }
        #expect(leaves == listed.map(\.leaf))
        let record = try Self.record(&props, server, owner)
        let records = (0..<70).map { leaf in
            let key = PushRecord.Key(
                member: record.key.member, leaf: UInt32(leaf), platform: .apns, server: server)
            return OwnerProof.sign(
                key, fingerprint: record.fingerprint, token: record.token,
                ownerTimestamp: record.ownerTimestamp, group: [1], by: owner,
                auxiliary: [UInt8](repeating: 0, count: 32))
        }
        let lists = GossipEvent.recordLists(records, author: owner.publicKey, at: Self.now)
        #expect(lists.allSatisfy { $0.serialized().count <= 40 << 10 })
        let counts = try lists.map { event -> Int in
            guard case .records(let records, true) = try Gossip(reading: event) else { return 0 }
            return records.count
        }
        #expect(counts.reduce(0, +) == 70 && counts.allSatisfy { $0 <= MarmotLimits.recordsOfList })
    }

    @Test("An owner's proof holds for its own group, leaf, token and stamp, and for the owner alone")
    func proofs() throws {
        var props = Props(seed: 46)
        let owner = try props.pair()
        let other = try props.pair()
        let server = try props.pair().publicKey
        let token = try props.token(.pushV1, to: server)
        let key = PushRecord.Key(member: owner.publicKey, leaf: 3, platform: .apns, server: server)
        func sign(_ key: PushRecord.Key, _ token: GossipToken?, at stamp: Int64) -> PushRecord {
            OwnerProof.sign(
                key, fingerprint: Array(repeating: 1, count: 12), token: token, ownerTimestamp: stamp,
                group: [1], by: key.member == owner.publicKey ? owner : other,
                auxiliary: Array(repeating: 0, count: 32))
        }
        let record = sign(key, token, at: 5)
        #expect(OwnerProof.verifies(record, group: [1]))
        #expect(!OwnerProof.verifies(record, group: [2]))
        let content = { (record: PushRecord) in
            String(
                decoding: GossipEvent.records([record], author: owner.publicKey, at: Self.now).content.array,
                as: UTF8.self)
        }
        for (part, instead) in [
            (#""leaf_index":3"#, #""leaf_index":4"#), (#""owner_ts":5"#, #""owner_ts":6"#),
            (#""platform":"apns""#, #""platform":"fcm""#), (owner.publicKey.hex, other.publicKey.hex)
        ] {
            let changed = content(record).replacing(part, with: instead)
            #expect(changed != content(record))
            let event = NostrEvent.rumor(
                kind: 447, createdAt: Self.now, content: Secret(changed.utf8), author: owner.publicKey)
            guard case .records(let read, false) = try Gossip(reading: event) else {
                Issue.record("no records")
                return
            }
            #expect(!OwnerProof.verifies(try #require(read[0]), group: [1], .legacy))
        }
    }
}

@Suite("Relay information")
struct RelayInformationTests {
    @Test("Limits are read, and what has another type counts as absent")
    func reads() throws {
        let text = #"""
            {"name":"r","limitation":{"max_message_length":16384,"max_content_length":"8196",
            "auth_required":true,"min_pow_difficulty":0,"created_at_lower_limit":3600}}
            """#
        let read = try RelayInformation(reading: Secret(text.utf8))
        #expect(read.maxMessageBytes == 16384 && read.maxContentCharacters == nil && read.authRequired)
        #expect(read.minPowDifficulty == nil && read.createdAtLowerLimit == .seconds(3600))
        #expect(try RelayInformation(reading: Secret("{}".utf8)) == RelayInformation())
    }

    @Test("What is no document is refused")
    func refuses() {
        for text in ["", "[]", "null", "{", #"{"limitation":{"max_message_length":1}"#] {
            #expect(throws: MarmotError(.malformedMessage)) {
                try RelayInformation(reading: Secret(text.utf8))
            }
        }
        let large = Secret(Array(repeating: 0x20, count: MarmotLimits.informationBytes + 1))
        #expect(throws: MarmotError(.tooLarge)) { try RelayInformation(reading: large) }
    }
}
