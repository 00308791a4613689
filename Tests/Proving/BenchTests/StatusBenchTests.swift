import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing

@testable import Bench

@Suite("What Status costs", .timeLimit(.minutes(30))) struct StatusBenchTests {
    @Test("Each part does its work and has its row")
    func rows() async throws {
        var plan = StatusBenchPlan(rounds: 3)
        plan.requests = 10
        let report = try await StatusBench(plan, world: .live).run().report
        for name in ["notifications_1_bytes_0", "notifications_1_bytes_600", "notifications_8_bytes_0"] {
            #expect((report.count("\(name)_requests_per_second") ?? 0) > 0, "\(name)")
            for primitive in [
                "ecdh", "key_pair", "recovery", "signature", "keccak_256", "aes_128_ctr", "hmac_sha256",
                "blake2b_256"
            ] {
                #expect(report.rows.contains { $0.name == "\(name)_\(primitive)_microseconds" })
            }
        }
        #expect(report.rows.contains { $0.name == "topic_key_milliseconds" })
        for share in [1_000, 10, 1] {
            #expect(report.rows.contains { $0.name == "poll_one_of_\(share)_nanoseconds_a_message" })
        }
    }

    @Test("Numbers have bounds")
    func bounds() async {
        let faults: [(inout StatusBenchPlan) -> Void] = [
            { $0.rounds = 2 }, { $0.rounds = 1_001 }, { $0.requests = 9 }, { $0.messages = 9 },
            { $0.messages = 100_001 },
            { $0.people = 10_999 }, { $0.people = 1_000_001 }
        ]
        for fault in faults {
            var plan = StatusBenchPlan(rounds: 3)
            fault(&plan)
            await #expect(throws: BenchError(.badPlan)) {
                try await StatusBench(plan, world: .live).run()
            }
        }
    }

    @Test("A relay that ends before it listens is no measurement")
    func deadRelay() async throws {
        let folder = try TemporaryFolder()
        var plan = StatusBenchPlan(rounds: 3)
        (plan.people, plan.messages) = (11, 10)
        let place = StatusBenchPlan.Place(executable: "/bin/false", directory: folder.path)
        await #expect(throws: BenchError(.relayNotReady)) {
            var report = BenchReport()
            _ = try await FollowedBench(plan, place, world: .live).run(&report, topicKey: .seconds(1))
        }
    }

    @Test(
        "Rows of stored people are the relay's own, of another person each, and queries open with their key")
    func people() throws {
        let name = try #require(ConfiguredName("status-load"))
        let people = StoredPeople(of: name, bundle: "org.example.load", world: .live)
        func records(_ number: Int) -> [Record] {
            people.rows(of: number).compactMap { if case .put(let record, _) = $0 { record } else { nil } }
        }
        let (first, second) = (records(0), records(1))
        let topics = first.dropFirst().compactMap { FollowedTopic($0) }
        let row = try #require(StatusRow(first[0]))
        #expect(first.count == 3 && topics.count == 2)
        #expect(topics.allSatisfy { $0.person.map { $0 == row.person } ?? false })
        #expect(try !(#require(StatusRow(second[0])).person == row.person))
        let query = people.query(about: 0, at: 7)
        #expect(WakuTopic.id(ofContentTopic: query.contentTopic) == topics[0].id)
        let opened = try WakuPayload.openSymmetric(Secret(query.payload), key: topics[0].key)
        let message = try MetadataMessage(reading: opened.data)
        let asked = try PushNotificationQuery(reading: message.payload).publicKeys
        #expect(asked.count == 1 && asked[0] == row.person)
    }
}
