import AtRest
import DeliveryTesting
import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WakuIngress

@testable import RelayProgram

@Suite("Keys of the topics that a Status relay follows", .timeLimit(.minutes(30)))
struct StatusTopicsTests {
    @Test("They are in memory for a minute after they were read, or until their row is written anew")
    func held() async throws {
        let clock = ManualClock()
        let world = clock.world(seed: 3)
        let store = try await SealedMemory(world, rows: 100).store
        let names = StatusRecordNames(configured("main"))
        let topics = StatusTopics(
            of: Secp256k1KeyPair.generate(world).point, names, registry: store, limits: StatusHostLimits(),
            world: world)
        let topic = WakuTopic.query(of: Secret(world.randomBytes(StatusLimits.hashBytes)))
        let key = Secret(world.randomBytes(StatusLimits.keyBytes))
        let row = FollowedTopic.record(topic, key: key, names, now: clock.now)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await topics.follow() }
            _ = try await store.apply([.put(row, if: .any)])
            topics.ring()
            try await asked(for: "a topic that is followed") { topics.followed.contains(topic.id) }

            #expect(try await topics.keys(of: topic.id).count == 1 && topics.held == 1)
            clock.advance(by: .seconds(59))
            topics.look()
            #expect(try await topics.keys(of: topic.id).count == 1 && topics.held == 1)
            #expect(topics.reads == 1)
            clock.advance(by: .seconds(1))
            topics.look()
            #expect(topics.held == 0)

            #expect(try await topics.keys(of: topic.id).count == 1 && topics.held == 1)
            _ = try await store.apply([.put(row, if: .any)])
            topics.ring()
            try await asked(for: "a memory without the key") { topics.held == 0 }
            tasks.cancelAll()
        }
    }

    @Test("A topic's key is found behind a thousand others of the same four bytes")
    func hidden() async throws {
        let clock = ManualClock()
        let world = clock.world(seed: 4)
        let store = try await SealedMemory(world, rows: 10_000).store
        let names = StatusRecordNames(configured("main"))
        let topics = StatusTopics(
            of: Secp256k1KeyPair.generate(world).point, names, registry: store, limits: StatusHostLimits(),
            world: world)
        let topic = WakuTopic.query(of: Secret(world.randomBytes(StatusLimits.hashBytes)))
        let key = Secret(world.randomBytes(StatusLimits.keyBytes))
        // As if somebody had looked for names with the same four bytes.
        let others = (0..<1_000).map { number in
            var row = FollowedTopic.record(
                topic, key: Secret([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32)), names,
                now: clock.now)
            row.key = names.topic(WakuTopic(name: Secret("other \(number)".utf8)))
            return Change.put(row, if: .any)
        }
        _ = try await store.apply(others)
        _ = try await store.apply([
            .put(FollowedTopic.record(topic, key: key, names, now: clock.now), if: .any)
        ])
        let keys = try await topics.keys(of: topic.id)
        #expect(keys.count == 1_001 && keys.contains { $0 == key })
    }
}
