import PushModel
import Testing

@testable import Bench

@Suite("What a trial of restarts proves")
struct TrialRestartTests {
    /// Whether it passes: two calls, one of them across the only restart, and a push that arrived.
    private func passes(
        _ change: (inout RestartLedger) -> Void = { _ in },
        _ book: (inout TrialLedger) -> Void = { $0.arrived("p", TrialArrival(id: "a", at: .distantPast)) }
    ) -> Bool {
        var plan = RestartPlan(executable: "/bin/true", directory: "/nowhere", seed: 7)
        plan.restarts = 1
        var promises = TrialLedger()
        promises.asked(["p"], of: "toy")
        promises.acknowledged(["p"])
        book(&promises)
        var ledger = RestartLedger()
        ledger.called(.taken, in: .seconds(1), across: false)
        ledger.called(.taken, in: .seconds(2), across: true)
        ledger.restarted(stoppedIn: .seconds(1))
        ledger.endedWithAnswer += 1
        change(&ledger)
        return ledger.report(plan, TrialVerdict(promises)).hasPassed
    }

    @Test("It passes only when every call was answered, some across a restart, and everything arrived")
    func verdict() {
        #expect(passes())
        for end in RestartLedger.End.allCases where end != .taken {
            #expect(!passes { $0.called(end, in: .zero, across: false) }, "\(end)")
        }
        #expect(!passes { $0 = RestartLedger() }, "nothing was tried")
        #expect(!passes { $0.endedWithAnswer = 0 }, "no connection was kept until a stop")
        #expect(!passes { $0.restarted(stoppedIn: .zero) }, "not as often as was planned")
        #expect(!passes({ _ in }, { _ in }), "lost")
    }

    @Test("Each end of a call has a row, in the order of the report")
    func rows() {
        var ledger = RestartLedger()
        ledger.called(.reset, in: .zero, across: true)
        let plan = RestartPlan(executable: "/bin/true", directory: "/nowhere", seed: 7)
        let report = ledger.report(plan, TrialVerdict(TrialLedger())).report
        #expect(
            report.rows.map(\.name) == [
                "restarts", "socket_handed_over", "seed", "calls", "calls_across_a_restart", "answered",
                "refused", "reset", "unanswered", "other_answers", "connections_ended_with_an_answer",
                "connections_ended_quietly", "acknowledged_and_lost", "doubled", "longest_stop_seconds",
                "longest_call_seconds", "passed"
            ])
        #expect(report.count("reset") == 1 && report.count("answered") == 0)
    }
}
