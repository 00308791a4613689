import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Testing

@Suite("A stop and a start with much owed", .timeLimit(.minutes(30)))
struct DeliveryRestartTests {
    /// Twenty rounds of take-over, while lanes claim and send.
    private static let owed = 20_000

    @Test(
        "Of tens of thousands owed over a stop and a start, none goes twice",
        arguments: EngineKind.allCases)
    func nothingTwice(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        try await Rig.run(depot, .of(ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted })) { rig in
            try await rig.owe((0..<Self.owed).map { push($0, origin: "server \($0 % 7)") })
        }
        // The dead one's lease ends, for engines that ask after it.
        depot.clock.advance(by: .seconds(30))
        let provider = ScriptedProvider(Names.fcm, slots: 100) { [clock = depot.clock] _ in
            // Bound: the clock is the test's own. Slow enough that many are under way in each round.
            try? await clock.sleep(until: clock.instant + .milliseconds(100))
            return .accepted
        }
        // Each round of the take-over comes when one claim more has been made.
        let inTurn: @Sendable (GatedOutbox, Int) async -> Void = { outbox, looks in
            await outbox.claims.wait(for: min(looks, 10))
        }
        try await Rig.run(depot, .of(provider), takingOver: inTurn) { rig in
            while rig.outbox.ended.count < Self.owed, !Task.isCancelled {
                await rig.pass(.milliseconds(50), step: .milliseconds(50), sleepers: 2)
                _ = try await rig.store.load()
            }
            #expect(rig.outbox.foreign.count == 0)
            try await rig.expectRows(0)
        }
        #expect(provider.sent.count == Self.owed)
        #expect(Set(provider.sent.map(\.id)).count == Self.owed)
    }
}
