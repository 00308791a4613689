import PushModel
import Testing

@testable import Bench

@Suite("What a siege proves", .timeLimit(.minutes(30)))
struct TrialSiegeTests {
    private func ledger(_ change: (inout SiegeLedger) -> Void = { _ in }) -> SiegeLedger {
        var ledger = SiegeLedger()
        for milliseconds in 1...100 { ledger.called(200, in: .milliseconds(milliseconds)) }
        (ledger.hasSignedUp, ledger.hasAdmin) = (true, true)
        change(&ledger)
        return ledger
    }

    @Test("One lost call of somebody else, a newcomer or an operator turned away, and it has not passed")
    func passed() {
        #expect(ledger().hasPassed)
        #expect(ledger { $0.attacker(heard: 429) }.hasPassed, "what attackers hear is their affair")
        #expect(!ledger { $0.called(503, in: .milliseconds(1)) }.hasPassed)
        #expect(!ledger { $0.called(nil, in: .seconds(15)) }.hasPassed)
        #expect(!ledger { $0.hasSignedUp = false }.hasPassed)
        #expect(ledger { ($0.hasSignedUp, $0.isCrowded) = (false, true) }.hasPassed)
        #expect(!ledger { $0.hasAdmin = false }.hasPassed)
        #expect(!ledger { $0.undelivered = 1 }.hasPassed, "an answered call is not a push that arrived")
        #expect(!ledger { $0.unduly = 1 }.hasPassed, "who is to hear nothing hears nothing")
        #expect(!SiegeLedger().hasPassed, "who has not asked has felt nothing")
    }

    @Test("A row says what others felt and what attackers heard; refused calls are no quick ones")
    func row() {
        let told = ledger {
            $0.called(503, in: .zero)
            for status in [401, 401, nil] { $0.attacker(heard: status) }
            ($0.hasAdmin, $0.cores, $0.undelivered, $0.unduly) = (false, 0.25, 7, 3)
        }
        #expect(told.p50 >= .milliseconds(50) && told.p50 < .milliseconds(52))
        #expect(told.row.hasPrefix("101 calls, 1 failed, p50 5"))
        #expect(
            told.row.hasSuffix(
                "relay 0.25 cores, 7 not delivered, 3 answered that should hear nothing, "
                    + "the admin listener did not answer, attackers heard nothing (1), 401 (2)")
        )
        let plan = SiegePlan(executable: "/bin/true", directory: "/nowhere")
        let (report, hasPassed) = SiegeLedger.report([(.quiet, ledger()), (.connections, told)], plan)
        #expect(!hasPassed)
        #expect(
            report.rows.map(\.name)
                == ["seconds_each", "quiet", "connections_of_one_client", "passed"])
        #expect(!SiegeLedger.report([], plan).hasPassed)
    }

    @Test("Attacks are chosen by name, in their own order, and one that is none is no plan")
    func chosen() throws {
        var plan = SiegePlan(executable: "/bin/true", directory: "/nowhere")
        let all: [SiegeAttack] = [.quiet, .connections, .descriptors]
        #expect(try plan.chosen(of: all).map(\.name) == all.map(\.name))
        plan.attacks = ["connections_of_a_crowd", "quiet"]
        #expect(try plan.chosen(of: all).map(\.name) == ["quiet", "connections_of_a_crowd"])
        plan.attacks = ["quiet", "free_tea"]
        #expect(throws: BenchError(.badPlan)) { try plan.chosen(of: all) }
        plan.seconds = 3
        #expect(plan.scaled(300) == 150 && plan.scaled(1) == 1)
        plan.seconds = 60
        #expect(plan.scaled(300) == 300)
    }

    @Test("Spans and callers out of bounds are refused")
    func plan() {
        var plan = SiegePlan(executable: "/bin/true", directory: "/nowhere")
        #expect(throws: Never.self) { try plan.check() }
        plan.callers = 0
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
        (plan.callers, plan.seconds) = (4, 0)
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
    }
}
