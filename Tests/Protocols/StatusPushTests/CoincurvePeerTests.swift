import Foundation
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// What Python's libraries make of Status's clients is brought to our relay, and what our clients make is
/// written down for a server of theirs: `make interop` compares.
@Suite("What coincurve, protobuf and pycryptodome seal and open", .timeLimit(.minutes(30)))
struct CoincurvePeerTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let from = environment["SEALBELL_STATUS_FROM"]
    private static let into = environment["SEALBELL_STATUS_INTO"]

    @Test(
        "Their messages are answered, and ours are written for them",
        .enabled(if: from != nil && into != nil, "make interop names two files"))
    func both() async throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: try #require(Self.from)))
        let made = try JSONValue.parse(Array(data), limitBytes: 8 << 20)
        let told: JSONObject = [
            "steps": .array(try await answers(made)), "device": try device(made), "origin": try origin(made)
        ]
        try Data(JSONValue.object(told).serialized())
            .write(to: URL(fileURLWithPath: try #require(Self.into)))
    }

    // MARK: their clients at our relay

    private func answers(_ made: JSONValue) async throws -> [JSONValue] {
        let identity = try Secp256k1KeyPair(secret: Secret(made.bytes("server_private")))
        let steps = try #require(made["steps"]?.array)
        #expect(steps.count > 10)
        return try await StatusRig(identity: identity).running { rig in
            var told: [JSONValue] = []
            for step in steps {
                let before = rig.services.sent.count
                let reply = try await Self.answer(step, identity, rig)
                let pushes = try rig.services.sent.dropFirst(before).map { try Self.pushed($0.message) }
                told.append(.object(["reply": reply, "pushes": .array(pushes)]))
            }
            return told
        }
    }

    private static func answer(
        _ step: JSONValue, _ identity: Secp256k1KeyPair, _ rig: StatusRig
    ) async throws -> JSONValue {
        let topic = try #require(step["content_topic"]?.string)
        let payload = Secret(try step.bytes("payload"))
        guard let wrapped = try await open(payload, topic, identity, rig),
            let reply = await rig.receive(wrapped)
        else { return .null }
        let sealed = WakuPayload.sealAsymmetric(
            try #require(reply.messages(by: identity).first), to: reply.recipient, signer: identity, rig.world
        )
        return .object([
            "payload": .string(sealed.reveal { Hex.encode($0) }),
            "content_topic": .string(reply.topic.contentTopic)
        ])
    }

    private static func open(
        _ payload: Secret, _ topic: String, _ identity: Secp256k1KeyPair, _ rig: StatusRig
    ) async throws -> Secret? {
        let own = [WakuTopic.partitioned(of: identity.point), .personal(of: identity.point)]
        if own.contains(where: { $0.contentTopic == topic }) {
            // What does not open is for another.
            return try? WakuPayload.openAsymmetric(payload, with: identity).data
        }
        let id = try #require(WakuTopic.id(ofContentTopic: topic))
        let rows = try await rig.store.page(.owner(rig.relay.keys.topics(sharing: id)), after: 0, limit: 10)
        return rows.compactMap { FollowedTopic($0) }.lazy
            // The same.
            .compactMap { try? WakuPayload.openSymmetric(payload, key: $0.key).data }.first
    }

    private static func pushed(_ message: ProviderMessage) throws -> JSONValue {
        let json = try #require(message.apns?.payload ?? message.fcm?.data)
        return .object([
            "token": .string(message.address.word),
            "json": try JSONValue.parse(json.reveal { Array($0) })
        ])
    }

    // MARK: our clients at their server

    private func device(_ made: JSONValue) throws -> JSONValue {
        var random = SeededRandom(seed: 71)
        var device = StatusInstallation(key: Draw.keyPair(&random), using: &random)
        let token = String(repeating: "a5", count: 32)
        device.use(try .apns(Secret(token.utf8), topic: try #require(made["topic"]?.string)))
        try device.apply(StatusSettings())
        try device.use(servers: [try #require(PublicPoint(made.bytes("other_server")))])
        device.switchOn()
        return .object([
            "key": .string(Hex.encode(device.key.point.uncompressed)), "token": .string(token),
            "installation": .string(device.installationID),
            "messages": Self.messages(device.due(now: StatusRig.now, using: &random))
        ])
    }

    private func origin(_ made: JSONValue) throws -> JSONValue {
        var random = SeededRandom(seed: 72)
        var origin = StatusOriginRoutine(key: Draw.keyPair(&random))
        origin.isSending = true
        let friend = try #require(PublicPoint(made.bytes("friend")))
        let text = try #require(made["text"]?.string)
        let note = StatusNotification(
            messageID: Draw.secret(32, &random), .direct, content: Secret(text.utf8))
        _ = try origin.notify(note, to: [friend], now: StatusRig.now)
        let code = try #require(made["contact_code"])
        let message = WakuMessage(
            payload: Secret(try code.bytes("payload")),
            contentTopic: try #require(code["content_topic"]?.string), timestamp: 0)
        let isTold = origin.receive(message, now: StatusRig.now)
        #expect(isTold)
        return .object([
            "key": .string(Hex.encode(origin.key.point.uncompressed)),
            "messages": Self.messages(origin.due(now: StatusRig.now, using: &random).messages)
        ])
    }

    private static func messages(_ messages: [WakuMessage]) -> JSONValue {
        .array(
            messages.map { message in
                .object([
                    "payload": .string(message.payload.reveal { Hex.encode($0) }),
                    "content_topic": .string(message.contentTopic)
                ])
            })
    }
}
