import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("What a Status relay forgets", .timeLimit(.minutes(30)))
struct StatusForgettingTests {
    private static let server = samplePair(1)
    private static let client = SampleClient(samplePair(2), at: server.point)

    private func running(_ body: @escaping @Sendable (StatusRig) async throws -> Void) async throws {
        try await StatusRig(identity: Self.server).running(body)
    }

    private func accepts(
        _ registration: PushNotificationRegistration, by client: SampleClient = Self.client,
        _ rig: StatusRig, at: SourceLocation = #_sourceLocation
    ) async {
        let fault = await client.fault(registration, rig)
        #expect(fault == nil, sourceLocation: at)
    }

    private func expectFollowed(
        _ count: Int, of client: SampleClient = Self.client, _ rig: StatusRig,
        at: SourceLocation = #_sourceLocation
    ) async throws {
        let followed = try await client.followed(rig)
        #expect(followed.count == count, sourceLocation: at)
    }

    /// What hosting does now and then.
    private func sweep(_ rig: StatusRig) async throws {
        let page = try await rig.store.page(rig.relay.keys.followed, after: 0, limit: 100)
        for change in try await rig.relay.unneeded(among: page) { _ = try await rig.store.apply([change]) }
    }

    @Test("Unregistering leaves no owner, address, topic or body: a version under a name that tells nothing")
    func everything() async throws {
        try await running { rig in
            await accepts(Self.client.registration(1), rig)
            await accepts(Self.client.end(2), rig)
            let keys = rig.relay.keys
            let owned = try await rig.store.page(.owner(keys.owner(Self.client.person)), after: 0, limit: 10)
            #expect(owned.isEmpty)
            let token = Self.client.registration(1).deviceToken
            let reached = try await rig.store.page(
                .address(keys.address(of: token, bundle: nil)), after: 0, limit: 10)
            #expect(reached.isEmpty)
            try await expectFollowed(0, rig)
            let left = try await rig.records()
            #expect(left.map(\.version) == [2] && left[0].body.count == 0)
            #expect(left[0].key.name.count == 32, "a digest")
        }
    }

    @Test("A version stays where there was a registration; on first contact as long as nodes keep messages")
    func versions() async throws {
        try await running { rig in
            await accepts(Self.client.registration(1), rig)
            await accepts(Self.client.end(2), rig)
            await accepts(Self.client.end(3), rig)
            await accepts(Self.client.end(1, "tablet"), rig)
            await accepts(Self.client.end(2, "tablet"), rig)
            let ends = try await rig.records().sorted { $0.expiresAt > $1.expiresAt }
            #expect(ends.map(\.version) == [3, 2])
            #expect(ends[0].expiresAt == .distantFuture)
            let left = ends[1].expiresAt.since(rig.world.now())
            #expect(left > StatusLimits.requestMemory && left <= StatusLimits.requestMemory + .seconds(3_600))
            // When somebody left is known by the hour.
            for end in ends {
                #expect(end.touchedAt.milliseconds % 3_600_000 == 0)
                #expect((0..<3_600_000).contains(rig.world.now().since(end.touchedAt).wholeMilliseconds))
            }
        }
    }

    @Test("Two people may share a topic's four bytes: both are found, and one who leaves takes one's own")
    func sharedTopic() async throws {
        try await running { rig in
            let one = SampleClient(peopleOfOneTopic.0, at: Self.server.point)
            let other = SampleClient(peopleOfOneTopic.1, at: Self.server.point)
            let topics = [one, other].map { WakuTopic.query(of: $0.person) }
            #expect(topics[0].id == topics[1].id)
            await accepts(one.registration(1), by: one, rig)
            await accepts(other.registration(1), by: other, rig)
            let index = RecordIndex.owner(rig.relay.keys.topics(sharing: topics[0].id))
            let both = try await rig.store.page(index, after: 0, limit: 10).compactMap { FollowedTopic($0) }
            #expect(both.count == 2)
            for topic in topics {
                let key = TopicKey.derive(from: topic)
                #expect(both.contains { $0.key == key })
            }
            await accepts(one.end(2), by: one, rig)
            let rest = try await rig.store.page(index, after: 0, limit: 10).compactMap { FollowedTopic($0) }
            #expect(rest.count == 1)
            #expect(rest.first?.person.map { $0 == other.person } ?? false)
            try await expectFollowed(2, of: other, rig)
        }
    }

    @Test("Who has no registration left, because tokens died, is not followed: by a sweep, or by a query")
    func deadTokens() async throws {
        try await running { rig in
            for isAsked in [false, true] {
                let version: UInt64 = isAsked ? 2 : 1
                await accepts(Self.client.registration(version), rig)
                let name = rig.relay.keys.registration(
                    of: Self.client.person, installation: Secret("phone".utf8))
                try await sweep(rig)
                try await expectFollowed(2, rig)
                _ = try await rig.store.apply([.expire(name, at: rig.world.now(), if: .any)])
                try await expectFollowed(2, rig)
                if isAsked {
                    let query = PushNotificationQuery(publicKeys: [Self.client.person])
                    let wrapped = MetadataMessage.wrap(query.encoded(), .query, by: samplePair(9))
                    let reply = await rig.receive(wrapped)
                    #expect(reply == nil)
                } else {
                    try await sweep(rig)
                }
                try await expectFollowed(0, rig)
            }
        }
    }

    @Test("Two installations that unregister in one moment leave topics, which a sweep takes")
    func together() async throws {
        try await running { rig in
            await accepts(Self.client.registration(1), rig)
            await accepts(Self.client.registration(1, "tablet"), rig)
            let first = try await Self.client.verdict(Self.client.end(2), rig)
            let second = try await Self.client.verdict(Self.client.end(2, "tablet"), rig)
            for verdict in [first, second] {
                let applied = try await rig.store.apply(#require(verdict).changes)
                #expect(applied == .committed)
            }
            try await expectFollowed(2, rig)
            try await sweep(rig)
            try await expectFollowed(0, rig)
        }
    }

    @Test("An installation that registers while the last one leaves keeps the topics")
    func between() async throws {
        try await running { rig in
            await accepts(Self.client.registration(1), rig)
            let end = try await Self.client.verdict(Self.client.end(2), rig)
            let page = try await rig.store.page(rig.relay.keys.followed, after: 0, limit: 100)
            await accepts(Self.client.registration(1, "tablet"), rig)
            let applied = try await rig.store.apply(#require(end).changes)
            #expect(applied == .refused(index: 1))
            // Nor does a sweep that began before.
            for record in page {
                let swept = try await rig.store.apply([.delete(record.key, if: .revision(record.revision))])
                #expect(swept == .refused(index: 0))
            }
            await accepts(Self.client.end(2), rig)
            try await expectFollowed(2, rig)
        }
    }

    @Test("Many that have ended do not hide one that is registered")
    func manyEnded() async throws {
        try await running { rig in
            for number in 0..<StatusLimits.installations + 1 {
                try await rig.keep(Self.client.registration(1, "\(number)"), of: Self.client.person)
                let name = rig.relay.keys.registration(
                    of: Self.client.person, installation: Secret("\(number)".utf8))
                _ = try await rig.store.apply([.expire(name, at: rig.world.now(), if: .any)])
            }
            await accepts(Self.client.registration(1), rig)
            let query = PushNotificationQuery(publicKeys: [Self.client.person])
            let reply = await rig.receive(
                MetadataMessage.wrap(query.encoded(), .query, by: samplePair(9)))
            guard case .query(let response)? = reply?.body else {
                Issue.record("it is there")
                return
            }
            #expect(response.info.map(\.version) == [1])
            try await sweep(rig)
            try await expectFollowed(2, rig)
        }
    }
}
