import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// Runs the cases of `status.json` that are the relay's, each by both columns.
struct StatusRelayVectors: Sendable {
    static let sections = ["registrations", "registration_sequences", "queries", "requests", "request_replay"]

    let set: VectorSet
    let json: JSONValue
    private let keys: [String: Secp256k1KeyPair]

    init(_ file: VectorFile) throws {
        json = file.json
        var cases: [VectorCase] = []
        for section in ["registrations", "registration_sequences", "queries", "requests"] {
            for column in ["spec", "status_go"] {
                cases += VectorCase.each(of: file.json[section], section, part: column)
            }
        }
        if let row = file.json["request_replay"] {
            cases.append(VectorCase("request_replay", name: "twice", row: row))
        }
        set = VectorSet("status/" + file.set, cases)
        var keys: [String: Secp256k1KeyPair] = [:]
        for row in json["keys"]?.array ?? [] {
            keys[row["name"]?.string ?? ""] = try Secp256k1KeyPair(secret: Secret(row.bytes("private")))
        }
        self.keys = keys
    }

    func holds(_ vector: VectorCase) async throws -> Bool {
        switch vector.section {
        case "registrations": return try await registration(vector)
        case "registration_sequences": return try await sequence(vector)
        case "queries": return try await query(vector)
        case "requests": return try await request(vector)
        case "request_replay": return try await replay(vector.row)
        default: return false
        }
    }

    func key(_ name: String?) throws -> Secp256k1KeyPair { try #require(keys[name ?? ""]) }

    private func rig(_ column: String, server: String? = "server") async throws -> StatusRig {
        try await StatusRig(
            identity: key(server ?? "server"),
            policy: StatusPolicy(compatibility: column == "spec" ? .standard : .statusGo))
    }

    // MARK: registrations

    private func registration(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let rig = try await rig(vector.part, server: row["server"]?.string)
        if let version = row["stored_version"]?.int64, version > 0 {
            var stored = try #require(row["registration"]).registration()
            stored.version = UInt64(version)
            try await rig.keep(stored, of: StatusHash.person(key(row["client"]?.string).point))
        }
        let signer = try row["transport_signer"]?.string.map { try key($0).point }
        let wrapped = Secret(try row.bytes("wrapped"))
        let reply = try await rig.running { await $0.receive(wrapped, transportSigner: signer) }
        return try Self.fits(reply, row["expect"]?[vector.part], row)
    }

    private static func fits(_ reply: StatusReply?, _ expected: JSONValue?, _ row: JSONValue) throws -> Bool {
        guard let reply else { return expected?["respond"]?.bool == false }
        guard expected?["respond"]?.bool == true, case .registration(let response) = reply.body else {
            return false
        }
        let errors =
            expected?["error_any_of"]?.array?.compactMap(\.int64) ?? [expected?["error"]?.int64 ?? -1]
        return try response.success == expected?["success"]?.bool
            && errors.contains(Int64(response.error.rawValue))
            && response.requestID == Secret(row.bytes("request_id"))
    }

    private func sequence(_ vector: VectorCase) async throws -> Bool {
        let steps = try #require(vector.row["steps"]?.array)
        return try await rig(vector.part).running { rig in
            for step in steps {
                let reply = await rig.receive(Secret(try step.bytes("wrapped")))
                let id = try #require(step["registration"]).text("installation_id")
                let person = StatusHash.person(try key(step["client"]?.string).point)
                let version = try await rig.version(of: person, installation: id)
                guard try Self.fits(reply, step["expect"], step),
                    version.map({ Int64($0) }) ?? 0 == step["stored_version_after"]?.int64
                else { return false }
            }
            return true
        }
    }

    func keep(_ row: JSONValue, in rig: StatusRig) async throws {
        for stored in row["stored"]?.array ?? [] {
            try await rig.keep(
                #require(stored["registration"]).registration(), of: Secret(stored.bytes("owner_hash")))
        }
    }

    // MARK: queries

    private func query(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let rig = try await rig(vector.part)
        try await keep(row, in: rig)
        let wrapped = Secret(try row.bytes("wrapped"))
        let reply = try await rig.running { await $0.receive(wrapped) }
        guard let reply else { return row["expect"]?[vector.part]?["respond"]?.bool == false }
        guard row["expect"]?[vector.part]?["respond"]?.bool == true, case .query(let response) = reply.body
        else { return false }
        let expected = try PushNotificationQueryResponse(
            reading: Secret(try #require(row["response"]).bytes("protobuf")))
        return try reply.recipient == key(row["response"]?["to"]?.string).point
            && reply.topic.name == #require(row["response"]).text("topic")
            && response.messageID == expected.messageID && response.success == expected.success
            && Self.sorted(response) == Self.sorted(expected)
    }

    private static func sorted(_ response: PushNotificationQueryResponse) -> [String] {
        response.info.map { $0.encoded().reveal { Hex.encode(Array($0)) } }.sorted()
    }

    // MARK: requests

    private func request(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let rig = try await rig(vector.part)
        try await keep(row, in: rig)
        let wrapped = Secret(try row.bytes("wrapped"))
        return try await rig.running { rig in
            let reply = await rig.receive(wrapped)
            let expected = try #require(row["expect"]?["status_go"])
            let isOurs = vector.part == "spec" && row["expect"]?["spec"]?.string != "same"
            // Unassigned types have no report; who switched pushes off gets none, and the sender hears of it
            // as of a success.
            let isUnassigned = isOurs && row["name"]?.string == "type unassigned"
            let pushes = isOurs ? [] : expected["gorush"]?["notifications"]?.array ?? []
            guard let reply else { return expected["respond"]?.bool == false && rig.services.sent.isEmpty }
            guard expected["respond"]?.bool == true, case .request(let response) = reply.body else {
                return false
            }
            var answer = try PushNotificationResponse(
                reading: Secret(#require(expected["response"]).bytes("protobuf")))
            if isUnassigned { answer.reports = [] }
            return try response.encoded() == answer.encoded()
                && reply.recipient == key(expected["response"]?["to"]?.string).point
                && Self.same(rig.services.sent.map(\.message), pushes)
        }
    }

    /// Each push that a gateway would be asked for was sent, and no other.
    private static func same(_ sent: [ProviderMessage], _ expected: [JSONValue]) throws -> Bool {
        guard sent.count == expected.count else { return false }
        return try expected.allSatisfy { row in try sent.contains { try same($0, row) } }
    }

    private static func same(_ message: ProviderMessage, _ row: JSONValue) throws -> Bool {
        guard message.address == Secret((row["tokens"]?[0]?.string ?? "").utf8) else { return false }
        let data: Secret
        if let apple = message.apns {
            guard row["platform"]?.int64 == 1, apple.topic == row["topic"]?.string else { return false }
            data = apple.payload
        } else {
            guard row["platform"]?.int64 == 2, message.fcm?.notice == row["message"]?.string else {
                return false
            }
            data = try #require(message.fcm).data
        }
        let json = try JSONValue.parse(data.reveal { Array($0) })
        let members = row["data"]?.object?.members ?? []
        return (message.apns == nil || json["aps"]?["alert"]?.string == row["message"]?.string)
            && !members.isEmpty && members.allSatisfy { json[$0.name] == $0.value }
    }

    private func replay(_ row: JSONValue) async throws -> Bool {
        let rig = try await rig("spec")
        try await keep(#require(json["requests"]?[0]), in: rig)
        let wrapped = Secret(try row.bytes("wrapped"))
        return try await rig.running { rig in
            let first = await rig.receive(wrapped)
            let second = await rig.receive(wrapped)
            return first != nil && second == nil && rig.services.sent.count == 1
        }
    }
}

extension JSONValue {
    /// A registration by the names of its fields.
    func registration() throws -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = .init(rawValue: Int32(self["token_type"]?.int64 ?? 0))
        registration.deviceToken = try text("device_token")
        registration.installationID = try text("installation_id")
        registration.accessToken = try text("access_token")
        registration.enabled = self["enabled"]?.bool ?? false
        registration.version = UInt64(self["version"]?.int64 ?? 0)
        registration.allowedKeyList = try list("allowed_key_list")
        registration.blockedChatList = try list("blocked_chat_list")
        registration.unregister = self["unregister"]?.bool ?? false
        registration.grant = Secret(try bytes("grant"))
        registration.allowFromContactsOnly = self["allow_from_contacts_only"]?.bool ?? false
        registration.apnTopic = try text("apn_topic")
        registration.blockMentions = self["block_mentions"]?.bool ?? false
        registration.allowedMentionsChatList = try list("allowed_mentions_chat_list")
        registration.mutedChatList = try list("muted_chat_list")
        return registration
    }

    private func list(_ member: String) throws -> [Secret] {
        try (self[member]?.array ?? []).map { Secret(try Hex.decode(Array(($0.string ?? "").utf8))) }
    }
}
