@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("A wall clock that is set", .timeLimit(.minutes(30)))
struct WallClockTests {
    static let jumps: [Duration] = [.seconds(7_200), .seconds(-7_200), .seconds(400_000_000)]

    @Test("A volatile push that waits is neither given up nor put off", arguments: jumps)
    func waiting(_ jump: Duration) async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            #expect(rig.admitVolatile(1...3).owed == 3)
            await provider.waitForReservation()
            rig.clock.skewWall(by: jump)
            await rig.pass(.milliseconds(300))
            provider.grant(3)
            await rig.passUntilNothingOwed()
            #expect(Set(provider.addresses) == ["t1", "t2", "t3"] && rig.custodyEnded.count == 0)
        }
    }

    @Test("A retry comes when it is due, near ones and far ones", arguments: jumps)
    func retries(_ jump: Duration) async throws {
        for asked in [Duration.seconds(5), .seconds(120)] {
            let depot = Depot()
            let first = Once()
            let provider = ScriptedProvider(Names.fcm) { _ in first.take() ? .busy(asked) : .accepted }
            try await Rig.run(depot, .of(provider)) { rig in
                rig.admitVolatile([1])
                await provider.waitForSent(1)
                await rig.pass(.milliseconds(300))
                let begin = rig.clock.instant
                rig.clock.skewWall(by: jump)
                await rig.passUntilNothingOwed()
                #expect(provider.addresses == ["t1", "t1"] && rig.custodyEnded.count == 0)
                let waited = begin.duration(to: rig.clock.instant)
                #expect(waited > asked - .seconds(1) && waited < asked + .seconds(60))
            }
        }
    }

    @Test("Custody is as long as it was, whatever the clock says meanwhile", arguments: jumps)
    func custody(_ jump: Duration) async throws {
        let depot = Depot()
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile(1...2, custody: .seconds(60))
            await provider.waitForReservation()
            await rig.pass(.seconds(30), step: .seconds(1))
            rig.clock.skewWall(by: jump)
            await rig.pass(.seconds(29), step: .seconds(1))
            #expect(rig.custodyEnded.count == 0)
            await rig.pass(.seconds(2), step: .seconds(1))
            await rig.passUntilNothingOwed()
            #expect(rig.custodyEnded.count == 2 && provider.sent.isEmpty)
        }
    }

    @Test("Under way when the clock is set, a push is tried again like any other", arguments: jumps)
    func underWay(_ jump: Duration) async throws {
        let depot = Depot()
        let clock = depot.clock
        let first = Once()
        let provider = ScriptedProvider(Names.fcm) { _ in
            guard first.take() else { return .accepted }
            clock.skewWall(by: jump)
            return .busy(.seconds(2))
        }
        try await Rig.run(depot, .of(provider)) { rig in
            rig.admitVolatile([1])
            await provider.waitForSent(1)
            await rig.passUntilNothingOwed()
            #expect(provider.addresses == ["t1", "t1"] && rig.custodyEnded.count == 0)
        }
    }
}
