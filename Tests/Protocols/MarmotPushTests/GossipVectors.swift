@testable import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// The sections of `marmot.json` that belong to device and origin: gossip, token store, batching.
struct GossipVectors {
    enum Fault: Error, CustomStringConvertible {
        case differs(String)
        case malformed(String)

        var description: String {
            switch self {
            case .differs(let what): "differs: \(what)"
            case .malformed(let what): "no such member: \(what)"
            }
        }
    }

    let json: JSONValue
    let now: UnixTime

    init(_ json: JSONValue) throws {
        self.json = json
        now = UnixTime(seconds: try Self.found(json["conventions"]?["now"]?.int64, "now"))
    }

    /// Throws what differs.
    func check(_ vector: VectorCase) throws {
        let row = vector.row
        switch vector.section + "/" + vector.part {
        case "gossip/seed", "gossip/mip05/events": try tagged(row)
        case "gossip/mip05/malformed": try malformed(row)
        case "gossip/push_v1/owner_proofs": try proof(row)
        case "gossip/push_v1/events": try record(row, signed())
        case "gossip/push_v1/store": try store(row, signed())
        case "token_store/": try tokenStore(row)
        case "batching/splits": try split(row)
        case "batching/by_server": try byServer(row)
        default: throw Fault.malformed(vector.part)
        }
    }

    private func signed() throws -> JSONValue { try found(json["gossip"]?["push_v1"], "push_v1") }

    // MARK: frame

    private static func found<Value>(_ value: Value?, _ what: String) throws -> Value {
        guard let value else { throw Fault.malformed(what) }
        return value
    }

    private func found<Value>(_ value: Value?, _ what: String) throws -> Value { try Self.found(value, what) }

    private func check(_ isTrue: Bool, _ what: String) throws {
        if !isTrue { throw Fault.differs(what) }
    }

    private func pair(_ name: String) throws -> Secp256k1KeyPair {
        let hex = try found(json["keys"]?[name]?["secret"]?.string, name)
        return try Secp256k1KeyPair(secret: Secret(Hex.decode(hex.utf8)))
    }

    private func moment(_ wall: UnixTime) -> Moment { Moment(wall: wall, instant: .now) }

    private func device(_ format: TokenFormat) throws -> MarmotLeaf {
        let settings = MarmotLeaf.Settings(
            platform: .desktop, server: try pair("server").publicKey, format: format)
        return MarmotLeaf(settings, identity: try pair("carol"), now: now)
    }

    // MARK: gossip

    private func event(_ row: JSONValue) throws -> NostrEvent {
        try NostrEvent.parse(Secret(found(row["event"], "event").serialized()), .rumor)
    }

    /// Members at 3 and 5 as the events name them, and carol at 0.
    private func tagView() throws -> GroupDouble {
        GroupDouble(
            ownLeaf: 0,
            members: [
                0: try pair("carol").publicKey, 3: try pair("alice").publicKey,
                5: try pair("bob").publicKey, 7: try pair("mallory").publicKey
            ])
    }

    /// Reads the event, checks what follows from it, and writes the same event.
    private func tagged(_ row: JSONValue) throws {
        let event = try event(row)
        let leaf = try found(row["sender_leaf"]?.uint32, "sender_leaf")
        let view = try tagView()
        var device = try device(.seed)
        var random = SeededRandom(seed: 1)
        let old = try GossipToken(
            .seed, box: Secret(Array(repeating: 1, count: 97)), server: pair("server").publicKey)
        if event.kind != NostrKind.tokenList {
            _ = device.tokens.replace(
                leaf, of: event.pubkey, with: [old], MessageOrder(epoch: 0, index: 0), now: now)
        }
        let message = GroupMessage(event, senderLeaf: leaf, order: MessageOrder(epoch: 1, index: 0))
        let receipt = device.receive(message, in: view, now: moment(now), using: &random)
        try check(receipt.ignored == nil && receipt.refused == 0, "it is taken")
        let tags = event.tags.filter { $0.first == "token" }
        let known = device.tokens.live(in: view, at: now)
        if event.kind == NostrKind.tokenList {
            try check(Set(known.map(\.leaf)) == [3, 7] && known.count == tags.count, "it fills its leaves")
        } else {
            try check(known.count == tags.count && known.allSatisfy { $0.leaf == leaf }, "the sender's set")
            try check(!known.contains { $0.token.isSame(as: old) }, "the old set is gone")
        }
        try check(
            device.schedule.pending.isEmpty == (event.kind != NostrKind.tokenRequest), "a request is answered"
        )
        try check(try GossipTests.rewritten(event).id == event.id, "written again it has the same id")
    }

    private func malformed(_ row: JSONValue) throws {
        let view = try tagView()
        var device = try device(.mip05Long)
        var random = SeededRandom(seed: 2)
        let event = try event(row)
        let leaf: UInt32 = event.pubkey == view.members[3] ? 3 : 5
        let message = GroupMessage(event, senderLeaf: leaf, order: MessageOrder(epoch: 1, index: 0))
        let receipt = device.receive(message, in: view, now: moment(now), using: &random)
        try check(receipt.ignored != nil && device.tokens.leaves.isEmpty, "it is refused")
    }

    // MARK: push-v1

    /// An entry as it would stand in an event, read by the reader of events.
    private func read(_ entry: JSONValue, isRemoval: Bool) throws -> PushRecord {
        let list = isRemoval ? "removals" : "tokens"
        let content = JSONValue.object([
            "v": .string("marmot-push-v1"), "\(list)": .array([entry])
        ])
        let event = NostrEvent.rumor(
            kind: isRemoval ? 449 : 448, createdAt: now.seconds, content: Secret(content.serialized()),
            author: try pair("bob").publicKey)
        guard case .records(let records, _) = try Gossip(reading: event), let record = records.first ?? nil
        else {
            throw Fault.differs("the entry is readable")
        }
        return record
    }

    private func proof(_ row: JSONValue) throws {
        guard case .object(var members) = try found(row["entry"], "entry") else {
            throw Fault.malformed("entry")
        }
        let signature = try found(row["owner_sig"]?.string, "owner_sig")
        members["owner_sig"] = .string(signature)
        let record = try read(.object(members), isRemoval: row["type"]?.string == "removal")
        let group = try Hex.decode(try found(row["group_id"]?.string, "group_id").utf8)
        try check(
            Hex.encode(OwnerProof.digest(record, group: group)) == row["record_digest"]?.string, "digest")
        try check(
            Hex.encode(OwnerProof.eventID(record, group: group)) == row["proof_event_id"]?.string, "id")
        try check(OwnerProof.verifies(record, group: group), "the signature holds")
        let secret = try Hex.decode(try found(row["secret"]?.string, "secret").utf8)
        let signed = OwnerProof.sign(
            record.key, fingerprint: record.fingerprint, token: record.token,
            ownerTimestamp: record.ownerTimestamp, group: group,
            by: try Secp256k1KeyPair(secret: Secret(secret)),
            auxiliary: try Hex.decode(try found(row["aux"]?.string, "aux").utf8))
        try check(Hex.encode(signed.ownerSignature) == signature, "our signature is the same")
    }

    private func recordView(_ signed: JSONValue) throws -> GroupDouble {
        var members: [UInt32: XOnlyKey] = [0: try pair("carol").publicKey]
        for member in try found(signed["members_by_leaf"]?.object, "members").members {
            members[try found(UInt32(member.name), "leaf")] = try found(
                member.value.string.flatMap { XOnlyKey(hex: $0) }, "member")
        }
        let group = try Hex.decode(try found(signed["group_id"]?.string, "group_id").utf8)
        return GroupDouble(groupID: group, ownLeaf: 0, members: members)
    }

    private func record(_ row: JSONValue, _ signed: JSONValue) throws {
        let view = try recordView(signed)
        let at = UnixTime(milliseconds: try found(signed["now_ms"]?.int64, "now_ms"))
        var device = try device(.pushV1)
        var random = SeededRandom(seed: 3)
        let event = try event(row)
        let leaf = try found(view.members.first { $0.value == event.pubkey }?.key, "sender")
        let message = GroupMessage(event, senderLeaf: leaf, order: MessageOrder(epoch: 1, index: 0))
        let receipt = device.receive(message, in: view, now: moment(at), using: &random)
        guard let expected = row["expect_entries"]?.array else {
            try check(receipt.ignored != nil && receipt.changed.isEmpty, "the whole event is void")
            return
        }
        try check(receipt.ignored == nil, "it is taken")
        try check(receipt.refused == expected.count { $0.bool == false }, "entries that are refused")
        try check(receipt.changed.isEmpty != expected.contains { $0.bool == true }, "entries that count")
        if case .records(let records, _) = try Gossip(reading: event) {
            let verdicts = records.map { $0.map { device.isCredible($0, in: view, now: at) } ?? false }
            try check(verdicts == expected.map { $0.bool == true }, "entry by entry")
        }
    }

    private func store(_ row: JSONValue, _ signed: JSONValue) throws {
        let view = try recordView(signed)
        let at = UnixTime(milliseconds: try found(signed["now_ms"]?.int64, "now_ms"))
        var device = try device(.pushV1)
        var random = SeededRandom(seed: 4)
        for (index, step) in try found(row["steps"]?.array, "steps").enumerated() {
            if step["op"]?.string == "leaf_removed" {
                _ = device.removed(leaves: [try found(step["leaf_index"]?.uint32, "leaf")])
                continue
            }
            let isRemoval = step["op"]?.string == "remove"
            let record = try read(try found(step["entry"], "entry"), isRemoval: isRemoval)
            let author = record.key.member
            let event =
                isRemoval
                ? GossipEvent.recordRemovals([record], author: author, at: at.seconds)
                : GossipEvent.records([record], author: author, at: at.seconds)
            let message = GroupMessage(
                event, senderLeaf: record.key.leaf, order: MessageOrder(epoch: 1, index: UInt64(index)))
            let receipt = device.receive(message, in: view, now: moment(at), using: &random)
            try check(receipt.ignored == nil && receipt.refused == 0, "step \(index) is credible")
        }
        let live = device.tokens.records(in: view)
        let expected = try found(row["expect"]?.array, "expect")
        try check(live.count == expected.count, "\(live.count) records")
        for record in live {
            let key = record.key
            let isExpected = expected.contains { one in
                one["key"]?[0]?.string == key.member.hex && one["key"]?[1]?.uint32 == key.leaf
                    && one["key"]?[2]?.string == key.platform.name && one["key"]?[3]?.string == key.server.hex
                    && one["fingerprint"]?.string == record.fingerprintText
                    && one["owner_ts"]?.int64 == record.ownerTimestamp
            }
            try check(isExpected, "the record in force")
        }
    }

    // MARK: token store

    private func tokenStore(_ row: JSONValue) throws {
        var random = SeededRandom(seed: 5)
        var members: [UInt32: XOnlyKey] = [:]
        for leaf in try found(row["leaves"]?.array, "leaves").compactMap(\.uint32) {
            members[leaf] = leaf == 0 ? try pair("carol").publicKey : random.keyPair().publicKey
        }
        let view = GroupDouble(ownLeaf: 0, members: members)
        var device = try device(.seed)
        for (index, step) in try found(row["steps"]?.array, "steps").enumerated() {
            let at = UnixTime(seconds: try found(step["at"]?.int64, "at"))
            switch step["op"]?.string {
            case "message":
                let leaf = try found(step["sender_leaf"]?.uint32, "sender_leaf")
                let tags = try found(step["event"]?["tags"]?.array, "tags")
                    .map { ($0.array ?? []).compactMap(\.string) }
                let event = NostrEvent.rumor(
                    kind: Int(try found(step["event"]?["kind"]?.int64, "kind")), createdAt: at.seconds,
                    tags: tags, content: Secret([]), author: try found(members[leaf], "member"))
                let order = MessageOrder(epoch: 1, index: UInt64(index))
                let receipt = device.receive(
                    GroupMessage(event, senderLeaf: leaf, order: order), in: view, now: moment(at),
                    using: &random)
                try check(receipt.ignored == nil, "step \(index) is taken")
            case "mls_remove":
                _ = device.removed(leaves: try found(step["leaves"]?.array, "leaves").compactMap(\.uint32))
            case "prune": _ = device.due(at: moment(at), in: view, using: &random)
            default: throw Fault.malformed("op")
            }
        }
        let rows = device.tokens.leaves.sorted { $0.key < $1.key }.flatMap { leaf, entry in
            entry.tokens.map { token in
                "\(leaf) \(token.box.reveal { Hex.encode($0) }) \(token.server.hex) \(entry.addedAt?.seconds ?? -1)"
            }
        }
        let expected = try found(row["expect"]?.array, "expect").map { one in
            "\(one["leaf_index"]?.uint32 ?? 0) \(one["encrypted_token"]?.string ?? "") "
                + "\(one["server_pubkey"]?.string ?? "") \(one["added_at"]?.int64 ?? 0)"
        }
        try check(rows.sorted() == expected.sorted(), "what is stored")
    }

    // MARK: batching

    private func split(_ row: JSONValue) throws {
        let format = try found(row["format"]?.string.flatMap { TokenFormat(rawValue: $0) }, "format")
        let limit = try found(row["limit"]?.int64, "limit")
        try check(format.batch == Int(limit), "the format's measure")
        let item = Secret(Array(repeating: 1, count: format.tokenBytes ?? 206))
        let count = Int(try found(row["tokens"]?.int64, "tokens"))
        let items = Array(repeating: item, count: count)
        let batches = TriggerBatch.split(items, format, TriggerFrame(), .sealed).map { Int64($0.count) }
        try check(batches == row["events"]?.array?.compactMap(\.int64), "\(batches)")
    }

    private func byServer(_ row: JSONValue) throws {
        var props = Props(seed: 6)
        var tokens: [GossipToken] = []
        var directory = MarmotOriginRoutine.Directory()
        for entry in try found(row["tokens"]?.array, "tokens") {
            let server = try pair(try found(entry[0]?.string, "server"))
            directory.lists[server.publicKey] = try RelayList(
                RelayList.event(
                    relays: ["wss://inbox.example.org"], at: now.seconds, by: server,
                    auxiliary: Array(repeating: 0, count: 32)))
            for _ in 0..<(try found(entry[1]?.int64, "count")) {
                tokens.append(try props.token(.seed, to: server.publicKey))
            }
        }
        let sent = try MarmotOriginRoutine(directory).notify(tokens, now: now, using: &props.random)
        let expected = try found(row["events"]?.array, "events")
        try check(sent.triggers.count == expected.count, "\(sent.triggers.count) events")
        for (trigger, entry) in zip(sent.triggers, expected) {
            let server = try pair(try found(entry[0]?.string, "server"))
            let event = try GiftWrap.unwrap(trigger.wrap, with: server).event
            // A decoy opens for nobody.
            let real = try TriggerContent(reading: event).chunks.count {
                (try? TokenBox.decrypt($0, .seed, with: server)) != nil
            }
            try check(real == entry[1]?.int64.map { Int($0) }, "\(real) tokens")
        }
    }
}
