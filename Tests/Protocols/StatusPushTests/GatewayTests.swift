import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// Requests whose pushes an external gateway sends.
@Suite("Status through a gateway", .timeLimit(.minutes(30)))
struct GatewayTests {
    private static func vectors() throws -> StatusRelayVectors? { try StatusRelayVectorTests.main.get() }

    /// A relay with what a vector has stored, and its answer.
    private func answer<Result: Sendable>(
        _ row: JSONValue, _ vectors: StatusRelayVectors, _ compatibility: StatusPolicy.Compatibility,
        _ body: @Sendable (StatusRig, StatusReply?) async throws -> Result
    ) async throws -> Result {
        let policy = StatusPolicy(compatibility: compatibility, delivery: .gateway)
        return try await answer(row, vectors, policy, body)
    }

    private func answer<Result: Sendable>(
        _ row: JSONValue, _ vectors: StatusRelayVectors, _ policy: StatusPolicy,
        _ body: @Sendable (StatusRig, StatusReply?) async throws -> Result
    ) async throws -> Result {
        let rig = try await StatusRig(identity: vectors.key("server"), policy: policy)
        try await vectors.keep(row, in: rig)
        let wrapped = Secret(try row.bytes("wrapped"))
        return try await rig.running { rig in try await body(rig, await rig.receive(wrapped)) }
    }

    private static func notifications(_ reply: StatusReply?) throws -> [JSONValue] {
        try (reply?.handover?.pushes ?? []).map { try JSONValue.parse($0.notification.reveal { Array($0) }) }
    }

    private static func names(_ value: JSONValue?) -> [String] { value?.object?.members.map(\.name) ?? [] }

    @Test("As deployed servers do, each notification is written as they write it, member by member")
    func deployed() async throws {
        guard let vectors = try Self.vectors() else { return }
        var count = 0
        for row in vectors.json["requests"]?.array ?? [] {
            let expected = try #require(row["expect"]?["status_go"])
            let pushes = expected["gorush"]?["notifications"]?.array ?? []
            count += pushes.count
            try await answer(row, vectors, .statusGo) { rig, reply in
                let name = row["name"]?.string ?? ""
                let found = try Self.notifications(reply)
                #expect(found == pushes, "\(name)")
                #expect(found.map { Self.names($0) } == pushes.map { Self.names($0) }, "\(name)")
                #expect(found.map { Self.names($0["data"]) } == pushes.map { Self.names($0["data"]) })
                // Nothing is owed: the gateway has the credentials.
                #expect(rig.services.sent.isEmpty)
                #expect((reply != nil) == expected["respond"]?.bool, "\(name)")
                guard case .request(let response)? = reply?.settled(failed: []).body else { return }
                let answer = try #require(expected["response"]).bytes("protobuf")
                #expect(response.encoded() == Secret(answer), "\(name)")
            }
        }
        #expect(count >= 8)
    }

    @Test("Ours has the seed's members besides, and a number that the gateway names a failure by")
    func standard() async throws {
        guard let vectors = try Self.vectors() else { return }
        let rows = vectors.json["requests"]?.array ?? []
        let batch = try #require(rows.first { $0["name"]?.string?.hasPrefix("batch") ?? false })
        try await answer(batch, vectors, .standard) { _, reply in
            let found = try Self.notifications(reply)
            #expect(found.map { $0["notif_id"]?.string } == ["0", "1"])
            #expect(found.map { $0["platform"]?.int64 } == [1, 2])
            // Another one would send to everybody who follows the topic.
            #expect(found[0]["topic"]?.string?.isEmpty == false && found[1]["topic"]?.string == "")
            for one in found {
                let data = try #require(one["data"])
                #expect(data["chat_id"] == data["chatId"] && data["chatId"] != nil)
                #expect(data["message"] == data["encryptedMessage"] || data["message"] == nil)
                #expect(data["installation_ids"]?.array?.count == 1)
            }
        }
    }

    @Test(
        "A dead token that a gateway names ends the registration that it was given, and none that came since")
    func late() async throws {
        guard let vectors = try Self.vectors() else { return }
        let rows = vectors.json["requests"]?.array ?? []
        let batch = try #require(rows.first { $0["name"]?.string?.hasPrefix("batch") ?? false })
        try await answer(batch, vectors, .standard) { rig, reply in
            let pushes = try #require(reply?.handover?.pushes)
            let records = try await rig.store.find(pushes.map(\.record)).compactMap(\.self)
            try #require(records.count == 2)
            // The first one's phone has registered again before gorush was heard.
            var renewed = records[0]
            renewed.touchedAt = renewed.touchedAt + .milliseconds(1)
            _ = try await rig.store.apply([.put(renewed, if: .any)])
            rig.pass(.seconds(1))
            for push in pushes {
                _ = try await rig.store.apply([
                    .expire(push.record, at: rig.world.now(), if: push.isUnchanged)
                ])
            }
            let states = try await rig.store.find(pushes.map(\.record)).map { $0?.state }
            #expect(states == [.live, .expired(at: rig.world.now())])
        }
    }

    @Test("What the gateway did not take is reported as failed; what was never given to it stays as it was")
    func settled() async throws {
        guard let vectors = try Self.vectors() else { return }
        let rows = vectors.json["requests"]?.array ?? []
        let batch = try #require(rows.first { $0["name"]?.string?.hasPrefix("batch") ?? false })
        try await answer(batch, vectors, .standard) { _, reply in
            let reply = try #require(reply)
            func reports(_ reply: StatusReply) -> [PushNotificationReport] {
                if case .request(let response) = reply.body { response.reports } else { [] }
            }
            #expect(reports(reply).map(\.error) == [.internalError, .internalError, .wrongToken])
            #expect(reports(reply).allSatisfy { !$0.success })
            let half = reply.settled(failed: [0])
            #expect(reports(half).map(\.success) == [false, true, false])
            #expect(reports(half).map(\.error) == [.internalError, .unknown, .wrongToken])
            #expect(half.handover == nil)
            let dead = reply.settled(failed: [0, 1], dead: [1])
            #expect(reports(dead).map(\.success) == [false, false, false])
            #expect(reports(dead).map(\.error) == [.internalError, .notRegistered, .wrongToken])
            #expect(reports(reply.settled(failed: [0, 1])).allSatisfy { !$0.success })
        }
    }

    @Test("Where apps are named, only what is theirs is given to the gateway; else all is")
    func bounds() async throws {
        guard let vectors = try Self.vectors() else { return }
        let rows = vectors.json["requests"]?.array ?? []
        let batch = try #require(rows.first { $0["name"]?.string?.hasPrefix("batch") ?? false })
        let topic = try await answer(batch, vectors, .standard) { _, reply in
            try Self.notifications(reply).first?["topic"]?.string
        }
        let own = try #require(topic)
        let app = ConfiguredName("acme")
        let cases: [(topics: Set<String>, app: ConfiguredName?, platforms: [Int64])] = [
            ([own], app, [1, 2]), ([own], nil, [1]), (["org.other"], app, [2]), ([], nil, [])
        ]
        for (topics, app, platforms) in cases {
            let policy = changing(StatusPolicy(delivery: .gateway, fcmApp: app)) { $0.servedTopics = topics }
            try await answer(batch, vectors, policy) { _, reply in
                let given = try Self.notifications(reply)
                #expect(given.compactMap { $0["platform"]?.int64 } == platforms)
                guard case .request(let response)? = reply?.settled(failed: []).body else { return }
                // What is nobody's here is reported as failed, as where no lane is.
                #expect(response.reports.count { $0.success } == platforms.count)
                #expect(response.reports.count { $0.error == .internalError } == 2 - platforms.count)
            }
        }
    }

    @Test("A request that comes twice is given to the gateway once")
    func repeated() async throws {
        guard let vectors = try Self.vectors() else { return }
        let row = try #require(vectors.json["requests"]?[0])
        try await answer(row, vectors, .standard) { rig, reply in
            #expect(reply?.handover?.pushes.count == 1)
            let wrapped = Secret(try row.bytes("wrapped"))
            #expect(await rig.receive(wrapped) == nil)
            // Nothing of it was sent: the same bytes are taken again.
            let reopening = try #require(reply?.handover).reopening
            _ = try await rig.store.apply([reopening])
            #expect(await rig.receive(wrapped)?.handover?.pushes.count == 1)
            #expect(await rig.receive(wrapped) == nil)
        }
    }
}
