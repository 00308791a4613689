import PushModel
import PushTesting
import Testing
import WireFormats

@testable import Bench

@Suite("What the ledger of several relays proves", .timeLimit(.minutes(30)))
struct ClusterTests {
    private func at(_ milliseconds: Int64) -> UnixTime { UnixTime(milliseconds: 1_000_000 + milliseconds) }

    private func fault(
        _ kind: TrialFault.Kind, _ relays: Set<Int> = [0], from: Int64 = 1000, sent: Int64 = 1200,
        to: Int64 = 1200
    ) -> TrialFault {
        TrialFault(kind, relays, began: at(from), sentUntil: at(sent), ended: at(to))
    }

    /// An acknowledged push with its arrivals, and what was done meanwhile.
    private func verdict(
        _ arrivals: [(relay: Int, id: String, Int64)], _ faults: TrialFault...,
        acknowledged: Bool = true
    ) -> TrialVerdict {
        var ledger = TrialLedger()
        ledger.asked(["p"], of: "toy")
        if acknowledged { ledger.acknowledged(["p"], by: 0, in: at(0)...at(1)) }
        for arrival in arrivals {
            ledger.arrived("p", .init(relay: arrival.relay, id: arrival.id, at: at(arrival.2)))
        }
        for fault in faults { ledger.happened(fault) }
        return TrialVerdict(ledger)
    }

    @Test("What was acknowledged and never came is lost; what came unacknowledged is not")
    func lost() {
        #expect(verdict([]).lost == 1 && !verdict([]).hasPassed)
        #expect(verdict([(0, "a", 5)]).hasPassed)
        let unpromised = verdict([(0, "a", 5)], acknowledged: false)
        #expect(unpromised.unpromised == 1 && unpromised.hasPassed)
    }

    @Test("A kill explains what its own relay had just sent, once it is gone, under one name")
    func killed() {
        let kill = fault(.killed)
        #expect(verdict([(0, "a", 900), (1, "a", 1300)], kill).hasPassed)
        #expect(verdict([(0, "a", 900), (0, "a", 1300)], kill).hasPassed, "its successor")
        #expect(!verdict([(1, "a", 900), (0, "a", 1300)], kill).hasPassed, "sent by one that lived")
        #expect(!verdict([(0, "a", -2500), (1, "a", 1300)], kill).hasPassed, "long settled")
        #expect(!verdict([(0, "a", 900), (1, "a", 1100)], kill).hasPassed, "before it was gone")
        let renamed = verdict([(0, "a", 900), (1, "b", 1300)], kill)
        #expect(renamed.doubledUnderTwoNames == 1 && !renamed.hasPassed)
        #expect(verdict([(0, "", 900), (1, "", 1300)], kill).hasPassed)
        #expect(verdict([(0, "a", 900), (1, "b", 1300)], kill).example?.contains("relay 1") == true)
    }

    @Test("A suspended relay excuses others, and never itself")
    func suspended() {
        let stop = fault(.suspended, sent: 1200, to: 40_000)
        #expect(verdict([(0, "a", 900), (1, "a", 25_000)], stop).hasPassed)
        #expect(
            !verdict([(1, "a", 25_000), (0, "a", 40_100)], stop).hasPassed, "woken, it sent what others had")
        #expect(!verdict([(0, "a", 900), (0, "a", 40_100)], stop).hasPassed, "woken, it sent again")
    }

    @Test("While its store is away a relay may send what it cannot settle, as long as its lease holds")
    func storeLost() {
        let outage = fault(.storeLost, sent: 11_000, to: 40_000)
        #expect(verdict([(0, "a", 10_500), (2, "a", 21_000)], outage).hasPassed)
        #expect(!verdict([(0, "a", 11_500), (2, "a", 21_000)], outage).hasPassed)
        // Without a lease it sends nothing, but for the second that the way to the push service takes.
        #expect(verdict([(0, "a", 12_000)], outage).hasPassed)
        #expect(verdict([(1, "a", 13_000)], outage).hasPassed)
        #expect(verdict([(0, "a", 13_000)], outage).sentWithoutLease == 1)
        #expect(!verdict([(0, "a", 13_000)], outage).hasPassed)
        #expect(verdict([(0, "a", 40_000)], outage).hasPassed)
        #expect(verdict([(0, "a", 13_000)], fault(.suspended, sent: 11_000, to: 40_000)).hasPassed)
    }

    @Test("Each double of a push wants an explanation of its own")
    func thrice() {
        let kill = fault(.killed)
        #expect(!verdict([(0, "a", 900), (1, "a", 1300), (2, "a", 1400)], kill).hasPassed)
        let second = fault(.killed, [1], from: 1350, sent: 1360, to: 1360)
        #expect(verdict([(0, "a", 900), (1, "a", 1300), (2, "a", 1400)], kill, second).hasPassed)
        #expect(
            verdict([(2, "a", 1400), (0, "a", 900), (1, "a", 1300)], second, kill).hasPassed, "in any order")
    }

    @Test("Service is back with the first push that was asked for behind the fault")
    func back() {
        var ledger = TrialLedger()
        ledger.asked(["p", "q"], of: "toy")
        #expect(ledger.serviceBackAfter == nil)
        ledger.watch(from: at(1000))
        ledger.acknowledged(["p"], by: 0, in: at(900)...at(1100))
        #expect(ledger.serviceBackAfter == nil)
        ledger.acknowledged(["q"], by: 0, in: at(1200)...at(3000))
        ledger.acknowledged(["q"], by: 0, in: at(1300)...at(4000))
        #expect(ledger.serviceBackAfter == .seconds(2))
    }

    @Test("A scenario passes only when nothing at all was wrong, and its report says what was")
    func report() throws {
        func passes(
            _ scenario: ClusterScenario = .crash,
            _ outcome: ClusterOutcome = ClusterOutcome(
                drainedIn: .seconds(1), exitStatuses: [0, 0, 0], owed: 0),
            back: Int64 = 2000, _ change: (inout TrialLedger) -> Void = { _ in }
        ) throws -> Bool {
            let plan = ClusterPlan(executable: "/bin/true", directory: "/nowhere", seed: 7)
            let run = TrialRun(seed: 7, relays: plan.relays)
            run.ledger { ledger in
                ledger.asked(["p"], of: "toy")
                ledger.watch(from: at(0))
                ledger.acknowledged(["p"], by: 0, in: at(0)...at(back))
                ledger.arrived("p", .init(relay: 0, id: "a", at: at(1)))
                change(&ledger)
            }
            let (report, hasPassed) = ClusterReport.make(scenario, plan, run, outcome)
            let json = try JSONValue.parse(Array(report.json().utf8))
            #expect(json["passed"] == .bool(hasPassed))
            #expect(json["scenario"]?.string == scenario.rawValue)
            return hasPassed
        }
        #expect(try passes())
        #expect(try !passes(.crash, ClusterOutcome(drainedIn: nil, exitStatuses: [0, 0, 0], owed: 0)))
        #expect(
            try !passes(.crash, ClusterOutcome(drainedIn: .seconds(1), exitStatuses: [0, nil, 0], owed: 0)))
        #expect(try !passes(.crash, ClusterOutcome(drainedIn: .seconds(1), exitStatuses: [0, 1, 0], owed: 0)))
        #expect(try !passes(.crash, ClusterOutcome(drainedIn: .seconds(1), exitStatuses: [0, 0, 0], owed: 1)))
        #expect(try !passes(.suspension), "nobody took over")
        #expect(
            try passes(.suspension) {
                $0.asked(["q"], of: "toy")
                $0.acknowledged(["q"], by: 0, in: self.at(1)...self.at(2))
                $0.arrived("q", .init(relay: 1, id: "b", at: self.at(3)))
            })
        #expect(try passes(.failover, back: 14_999))
        #expect(try !passes(.failover, back: 15_000), "back too late")
        #expect(try !passes { $0.neverAcknowledged += 1 })
        #expect(try !passes { $0.unexpected(500) })
        #expect(try !passes { $0.arrived("another", .init(relay: 0, id: "a", at: self.at(2))) })
        #expect(
            try !passes { $0.acknowledged([], by: 0, in: self.at(0)...self.at(1), areAlive: false) })
        #expect(try passes { $0.unanswered += 1 })
    }

    @Test("A relay that is down is not asked, nor is one that did not answer while another does")
    func choice() {
        let clock = ManualClock()
        let run = TrialRun(seed: 7, relays: 2, world: clock.world(seed: 7))
        #expect(run.choose() == nil)
        let address = RelayProcess.Address(pid: 1, host: "127.0.0.1", port: 1)
        run.address = address
        run.avoid(.init(number: 0, address: address))
        #expect(run.choose()?.number == 0, "there is no other")
        run.set(address, of: 1)
        #expect(Set((0..<50).map { _ in run.choose()?.number }) == [1])
        clock.advance(by: .seconds(2))
        #expect(Set((0..<50).map { _ in run.choose()?.number }) == [0, 1])
        run.address = nil
        #expect(run.choose()?.number == 1)
    }

    @Test("Callers end when the harm is done, and what comes after has all that they did")
    func course() async throws {
        let run = TrialRun(seed: 7)
        let caller: TrialRun.Part = {
            // Bound: the harm below, which waits for nothing.
            while !run.isEnding { await Task.yield() }
            run.ledger { $0.asked(["p"], of: "toy") }
        }
        let requests = try await run.live(
            watchers: [{ try await run.collect([], []) }], callers: [caller, caller]
        ) {
            #expect(!run.isEnding)
            run.ledger { $0.acknowledged([]) }
        } after: {
            #expect(run.isEnding && run.ledger { $0.acknowledgedRequests } == 1)
            return run.ledger { $0.requests }
        }
        #expect(requests == 2)
    }

    @Test("A plan that fits nothing is refused")
    func plans() {
        var plan = ClusterPlan(executable: "/bin/true", directory: "/nowhere", seed: 7)
        #expect(throws: Never.self) { try plan.check() }
        plan.scenarios = [.mixed]
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
        plan.olderExecutable = "/bin/false"
        #expect(throws: Never.self) { try plan.check() }
        plan.scenarios = [.kills]
        plan.store = .sqlite
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
        plan.relays = 1
        #expect(throws: Never.self) { try plan.check() }
        plan.scenarios = [.failover]
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
        plan.scenarios = []
        #expect(throws: BenchError(.badPlan)) { try plan.check() }
    }
}
