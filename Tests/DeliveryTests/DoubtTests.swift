import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("A wall clock that is not believed", .timeLimit(.minutes(30)))
struct DoubtTests {
    static let jumps: [Duration] = [.seconds(25 * 3_600), .seconds(400 * 86_400)]
    private static let space = Space(core: "registrations")

    private func registration(_ depot: Depot) -> Record {
        Record(
            key: RecordKey(Self.space, Secret("phone".utf8)), touchedAt: depot.clock.now,
            expiresAt: depot.clock.now + .seconds(86_400), body: Secret("body".utf8))
    }

    private func owed(_ numbers: ClosedRange<Int>, _ depot: Depot) -> [Push] {
        numbers.map { push($0, custodyEnds: depot.clock.now + .seconds(86_400)) }
    }

    @Test("A clock that leaps while a push is under way does not end its custody", arguments: jumps)
    func leapsUnderWay(_ jump: Duration) async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm) { _ in
            depot.clock.skewWall(by: jump)
            return .busy()
        }
        try await Rig.run(depot, .of(provider)) { rig in
            try await rig.expect([.known(.retry)], of: owed(1...1, depot))
            #expect(rig.custodyEnded.count == 0)
            try await rig.expectRows(1)
        }
    }

    @Test(
        "A relay that starts ahead ends and purges nothing, sends what it owes, and says so",
        arguments: EngineKind.allCases, jumps)
    func start(_ kind: EngineKind, _ jump: Duration) async throws {
        let depot = Depot(kind)
        let record = registration(depot)
        try await Rig.run(depot, .of(ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted })) { rig in
            _ = try await rig.store.apply([.put(record, if: .absent)])
            try await rig.owe(owed(1...3, depot))
        }
        depot.clock.advance(by: .seconds(30))
        depot.clock.skewWall(by: jump)
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            await rig.pass(.seconds(150), step: .seconds(1))
            #expect(rig.custodyEnded.count == 0)
            #expect(rig.journal.contains("wall clock is not believed"))
            try await rig.expectRows(3)
            #expect(try await rig.store.find([record.key])[0] != nil)
            // What this clock itself has stamped ends by it.
            try await rig.owe([push(9, custodyEnds: depot.clock.now + .seconds(60))])
            await rig.pass(.seconds(90), step: .seconds(1))
            await rig.pass(until: rig.custodyEnded, reaches: 1)
            provider.grant(3)
            await rig.pass(until: rig.outbox.ended, reaches: 4)
            #expect(Set(provider.addresses) == ["t1", "t2", "t3"] && provider.sent.count == 3)
            // An operator's word.
            try await rig.service.clock.trust()
            await rig.pass(.seconds(150), step: .seconds(1))
            #expect(try await rig.store.find([record.key])[0] == nil)
            #expect(rig.journal.contains("wall clock is believed again"))
        }
    }

    @Test("A running relay whose clock is set ahead goes on as if it were not", arguments: jumps)
    func running(_ jump: Duration) async throws {
        let depot = Depot()
        let record = registration(depot)
        let first = Once()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in
            first.take() ? .busy(.seconds(2)) : .accepted
        }
        try await Rig.run(depot, .of(provider)) { rig in
            _ = try await rig.store.apply([.put(record, if: .absent)])
            try await rig.owe(owed(1...3, depot))
            await provider.waitForReservation()
            rig.clock.skewWall(by: jump)
            await rig.pass(.seconds(150), step: .seconds(1))
            try await rig.expectRows(3)
            // A retry under doubt is one.
            provider.grant(3)
            await rig.pass(until: rig.outbox.ended, reaches: 3)
            #expect(provider.sent.count == 4 && rig.custodyEnded.count == 0)
            #expect(try await rig.store.find([record.key])[0] != nil)
            rig.clock.skewWall(by: .zero - jump)
            await rig.pass(.seconds(30), step: .seconds(1))
            #expect(rig.journal.contains("wall clock is believed again"))
        }
    }

    @Test(
        "Custody and records end in their time, over a stop of some hours too",
        arguments: EngineKind.allCases)
    func inTime(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let record = registration(depot)
        let waiting = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(waiting)) { rig in
            _ = try await rig.store.apply([.put(record, if: .absent)])
            try await rig.owe(owed(1...3, depot))
            await rig.pass(.seconds(20 * 3_600), step: .seconds(60))
        }
        depot.clock.skewWall(by: .seconds(5 * 3_600))
        try await Rig.run(depot, .of(waiting)) { rig in
            await rig.pass(.seconds(90), step: .seconds(1))
            await rig.pass(until: rig.custodyEnded, reaches: 3)
            let found = try await rig.store.find([record.key])
            #expect(found[0] == nil)
        }
        #expect(waiting.sent.isEmpty)
    }
}
