import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WireFormats

/// Runs the cases of `session.json` that are the swarm's.
struct SwarmVectors: Sendable {
    let json: JSONValue
    let set: VectorSet
    private let now: UnixTime

    init(_ file: VectorFile) {
        json = file.json
        now = file.now
        var cases: [VectorCase] = []
        for section in ["monitor", "storage_push", "notifier_keys"] {
            cases += VectorCase.each(of: file.json[section], section)
        }
        cases += VectorCase.each(of: file.json["swarm"]?["map"], "swarm", part: "map")
        if let row = file.json["swarm"]?["service_nodes"] {
            cases.append(VectorCase("swarm", part: "service_nodes", name: "all", row: row))
        }
        let frames = VectorCase.each(of: file.json["oxenmq"], "oxenmq").filter { $0.name != "note" }
        set = VectorSet("session/" + file.set, cases + frames)
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        switch (vector.section, vector.part) {
        case ("monitor", _): return try monitor(row)
        case ("storage_push", _): return try storagePush(row)
        case ("notifier_keys", _): return try notifierKey(row)
        case ("swarm", "map"): return try map(row)
        case ("swarm", _): return try serviceNodes(row)
        case ("oxenmq", _): return try frames(vector)
        default: return false
        }
    }

    // MARK: Sections

    /// Both sides: what the simulated server answers, and what the link reads out of the answer.
    private func monitor(_ row: JSONValue) throws -> Bool {
        let request = try Self.hex(row, "request")
        let judged = request.withUnsafeBytes { MonitorJudge(now: now).judge($0) }
        let (verdicts, isList) = try #require(judged)
        let reply = MonitorJudge.reply(verdicts, isList: isList)
        let read = try reply.withUnsafeBytes { try MonitorReply(parsing: $0, atMost: verdicts.count) }
        guard let number = row["reply_errcode"]?.int64 else {
            let fits = reply == (try Self.hex(row, "reply"))
            return fits && read.answers.allSatisfy { $0 == .watched } && read.isSingle == !isList
        }
        return read.answers == [.refused(MonitorRefusal(number: number))]
    }

    private func storagePush(_ row: JSONValue) throws -> Bool {
        let body = try Self.hex(row, "body")
        // What is refused throws; the vectors say when it must.
        let push = body.withUnsafeBytes { raw in try? StorageNotice(parsing: raw) }
        guard let expected = row["expect"], expected.object != nil else { return push == nil }
        let data = expected["data"]?.string
        let fits = try push.map { push in
            try push.account.bytes.reveal({ Array($0) }) == Self.hex(expected, "account")
                && push.hashText == expected["hash"]?.string
                && Int64(push.namespace) == expected["namespace"]?.int64
                && push.timestamp.milliseconds == expected["timestamp_ms"]?.int64
                && push.expiry.milliseconds == expected["expiry_ms"]?.int64
                && push.data.map { $0.reveal { Hex.encode($0) } } == data
        }
        return fits ?? false
    }

    private func notifierKey(_ row: JSONValue) throws -> Bool {
        let core = try X25519KeyPair(privateKey: Secret(Self.hex(row, "main_sk")))
        let pair = try NotifierKey.pair(core: core, worker: Self.text(row, "name"))
        return try pair.publicKey == Self.hex(row, "pk")
            && pair.privateKey == Secret(try Self.hex(row, "sk"))
    }

    private func map(_ row: JSONValue) throws -> Bool {
        let bytes = Secret(try Self.hex(row, "account"))
        let account = try #require(AccountID(bytes))
        let ids = (row["ids"]?.array ?? []).compactMap { $0.string.flatMap { UInt64($0) } }
        let map = SwarmMap(ids)
        let swarm = UInt64(try Self.text(row, "swarm"))
        let fits = account.swarmPoint == UInt64(try Self.text(row, "space"))
        let inArc = map.ids.filter { map.arc(of: $0)?.contains(account.swarmPoint) == true }
        return fits && (map.swarm(of: account.swarmPoint) ?? SwarmRing.none) == swarm
            && inArc == (ids.isEmpty ? [] : [swarm])
    }

    private func serviceNodes(_ row: JSONValue) throws -> Bool {
        let parts = (row["reply_parts"]?.array ?? []).compactMap { $0.string.map { Array($0.utf8) } }
        let nodes = try parts[0].withUnsafeBytes { status in
            try parts[1].withUnsafeBytes { try ServiceNodes(frames: [status, $0]) }
        }
        return nodes.nodes.map { Hex.encode($0.key.bytes) } == (row["usable"]?.array ?? []).map(\.string)
            && nodes.swarms.ids.map(String.init) == (row["swarm_ids"]?.array ?? []).map(\.string)
    }

    private func frames(_ vector: VectorCase) throws -> Bool {
        if vector.name == "routing_id" {
            let core = try #require(json["keys"]?["push_core"])
            let id = OxenMessage.routingID(of: try Self.hex(core, "x25519_pk"))
            return Hex.encode(id) == vector.row.string
        }
        var isRead = true
        for message in vector.row.array ?? [] {
            let frames = try (message["frames"]?.array ?? []).map { frame in
                Secret(try Hex.decode(try #require(frame.string).utf8))
            }
            let words = frames.map { $0.reveal { String(decoding: $0, as: UTF8.self) } }
            let isOurs = message["dir"]?.string == "client"
            isRead = isRead && fits(OxenMessage(frames), words, frames, isOurs: isOurs, in: vector.name)
        }
        return isRead
    }

    private func fits(
        _ message: OxenMessage, _ words: [String], _ frames: [Secret], isOurs: Bool, in name: String
    ) -> Bool {
        switch (name, isOurs, message) {
        case ("handshake", true, .hi), ("handshake", false, .hello): return true
        case ("request", true, .call("monitor.messages", let parts)): return parts.count == 2
        case ("request", false, .reply(let tag, let parts)): return tag == frames[1] && parts.count == 1
        case ("push", false, .call("notify.message", let parts)): return parts.count == 1
        case ("unknown_command", true, .call), ("request_without_tag", true, .call): return true
        case ("unknown_command", false, .refusal(.unknownCommand, nil)): return true
        case ("request_without_tag", false, .refusal(.noReplyTag, nil)): return true
        case ("forbidden_request", false, .refusal(.forbidden, let tag?)): return tag == frames[2]
        default: return false
        }
    }

    // MARK: Values

    private static func text(_ row: JSONValue, _ name: String) throws -> String {
        try #require(row[name]?.string)
    }

    private static func hex(_ row: JSONValue, _ name: String) throws -> [UInt8] {
        try Hex.decode(try text(row, name).utf8)
    }
}
