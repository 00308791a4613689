import Foundation
import Simulation
import Testing

/// A few seeds, so that the simulation itself stays sound; `scripts/simulate` runs a thousand, and the other
/// planted faults, as the last part of `make test`. Tables are walked in another order in each process here,
/// so a seed that fails is to be run with the tool.
@Suite("The relay on simulated machines", .serialized, .timeLimit(.minutes(30)))
struct SimulationTests {
    /// On a thread of its own: a run blocks its thread, and the others' tests share theirs.
    private static func run(_ trial: SeedRun) async -> SeedRun.Report {
        // Bound: a trial ends by itself, after so many steps.
        await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: trial.run()) }.start()
        }
    }

    @Test(
        "Whatever happens, no accepted push is lost and none is sent twice without need",
        arguments: SeedRun.EngineKind.allCases)
    func law(_ engine: SeedRun.EngineKind) async {
        var owed = 0
        for seed in UInt64(1)...8 {
            let report = await Self.run(SeedRun(seed: seed, engine: engine))
            #expect(report.violations.isEmpty, "seed \(seed): \(report.stories)")
            owed += report.owed
        }
        #expect(owed > 50)
    }

    private static func run(_ trial: OriginSeedRun) async -> OriginSeedRun.Report {
        // Bound: as above.
        await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: trial.run()) }.start()
        }
    }

    @Test("Whatever happens to an origin, it keeps what it answered", arguments: SeedRun.EngineKind.allCases)
    func origin(_ engine: SeedRun.EngineKind) async {
        var (registrations, notifications) = (0, 0)
        for seed in UInt64(1)...6 {
            let report = await Self.run(OriginSeedRun(seed: seed, engine: engine))
            #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
            registrations += report.answered.registrations
            notifications += report.answered.notifications
        }
        #expect(registrations > 30 && notifications > 30)
    }

    @Test("An origin that does not hear its relay's answers is found out")
    func hearsNothing() async {
        for seed in UInt64(1)...24 {
            let report = await Self.run(OriginSeedRun(seed: seed, sabotage: .hearsNothing))
            guard report.violations.contains(where: { $0.law == .pendingForEver }) else { continue }
            return
        }
        Issue.record("no seed found it")
    }

    @Test("A push that is settled before it is sent is found", arguments: SeedRun.EngineKind.allCases)
    func settlesFirst(_ engine: SeedRun.EngineKind) async {
        // Which seed kills a process in between, any change of what a relay does may change.
        for seed in UInt64(1)...8 {
            let report = await Self.run(SeedRun(seed: seed, engine: engine, sabotage: .settlesFirst))
            guard report.violations.contains(where: { $0.law == .sentAfterSettling }) else { continue }
            #expect(!report.stories.isEmpty)
            return
        }
        Issue.record("eight seeds found nothing")
    }
}
