import AtRest
import Bench
import Delivery
import Foundation
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("Outages", .timeLimit(.minutes(30)))
struct OutageTests {
    /// Scale: a hundredth of 1,000 pushes a second and of the lane's 4,096 places, for the whole ten minutes.
    @Test("Through ten minutes without an answer memory stays bounded, and afterwards each push arrives once")
    func unreachable() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await outage(provider, owedAtItsEnd: 6_000) { provider.grant(4) }
        #expect(provider.sent.count == 6_000)
    }

    /// The same scale. Refusals are attempts, so more is sent; what counts is that each is accepted once.
    @Test("Through ten minutes of 503 memory stays bounded, and afterwards each push is accepted once")
    func refusing() async throws {
        let isBack = Mutex(false)
        let accepted = Mutex<[PushID]>([])
        let provider = ScriptedProvider(Names.fcm, slots: 16) { push in
            guard isBack.withLock(\.self) else { return .busy(.seconds(120)) }
            accepted.withLock { $0.append(push.id) }
            return .accepted
        }
        try await outage(provider, owedAtItsEnd: 6_000) { isBack.withLock { $0 = true } }
        let ids = accepted.withLock(\.self)
        #expect(ids.count == 6_000)
        #expect(Set(ids).count == 6_000)
    }

    /// The trial of `sealbell-bench outage`, which runs it at full scale, at a fiftieth of it in both respects.
    @Test(
        "The trial itself, on SQLite: ten minutes, each push once, no more in memory than there are places",
        arguments: OutagePlan.Fault.allCases)
    func trial(_ fault: OutagePlan.Fault) async throws {
        let name = "outage-\(UUID().uuidString)"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // What stays behind is only litter in a directory for litter.
        defer { try? FileManager.default.removeItem(at: folder) }
        var plan = OutagePlan(directory: folder.path)
        plan.fault = fault
        plan.rate = 20
        plan.limits.lanePushes = 82
        plan.patience = .seconds(1_500)
        let (report, hasPassed) = try await OutageTrial(plan, world: .live, say: { _ in }).run()
        #expect(hasPassed, "\(report.lines())")
        #expect(report.count("delivered") == 12_000)
        #expect(report.count("parked_peak").map { $0 > 11_000 } == true)
        // Slowed to a push a tick, and not one for each push and minute: that would be hundreds of thousands.
        #expect(report.count("attempts").map { $0 < 12_000 + 10_000 } == true, "\(report.lines())")
    }

    private func outage(
        _ provider: ScriptedProvider, owedAtItsEnd owed: Int, ends: () -> Void
    ) async throws {
        var limits = DeliveryLimits()
        limits.lanePushes = 41
        limits.tick = .milliseconds(500)
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            for second in 0..<600 {
                try await rig.owe((0..<10).map { push(second * 10 + $0, origin: "o\(second % 7)") })
                let before = try rig.lane().inMemory
                await rig.pass(.seconds(1), step: .milliseconds(500))
                let after = try rig.lane().inMemory
                #expect(before <= 41 && after <= 41)
            }
            try await rig.expectRows(owed)
            ends()
            await rig.pass(.seconds(240), step: .milliseconds(500))
            await rig.pass(until: rig.outbox.ended, reaches: owed)
            try await rig.expectRows(0)
        }
        #expect(Set(provider.sent.map(\.id)).count == owed)
    }
}
