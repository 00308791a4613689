import Foundation
import PushModel
import PushTesting
import Testing
import WireFormats

@testable import Bench

@Suite("What a chaos trial's ledger proves", .timeLimit(.minutes(30)))
struct ChaosTests {
    private func at(_ milliseconds: Int64) -> UnixTime { UnixTime(milliseconds: 1_000_000 + milliseconds) }

    /// A push `p`, asked for once, with its arrivals, and one kill from 1,000 ms to 1,200 ms.
    private func verdict(
        acknowledged: Bool = true, _ arrivals: [(id: String, Int64)]
    ) -> TrialVerdict {
        var ledger = TrialLedger()
        ledger.asked(["p"], of: "toy")
        if acknowledged { ledger.acknowledged(["p"]) }
        for arrival in arrivals { ledger.arrived("p", .init(id: arrival.id, at: at(arrival.1))) }
        ledger.happened(.init(began: at(1000), ended: at(1200)))
        return TrialVerdict(ledger)
    }

    @Test("What was acknowledged and never came is lost; what came unacknowledged is not")
    func lost() {
        let lost = verdict([])
        #expect(lost.lost == 1 && !lost.hasPassed)
        let unpromised = verdict(acknowledged: false, [("a", 5)])
        #expect(unpromised.unpromised == 1 && unpromised.lost == 0 && unpromised.hasPassed)
        let neither = verdict(acknowledged: false, [])
        #expect(neither.lost == 0 && neither.unpromised == 0 && neither.hasPassed)
        #expect(verdict([("a", 5)]).hasPassed)
    }

    @Test("Each protocol's loss is counted by itself")
    func shares() {
        var ledger = TrialLedger()
        ledger.asked(["p"], of: "one")
        ledger.acknowledged(["p"])
        ledger.arrived("p", .init(id: "a", at: at(5)))
        ledger.asked(["q"], of: "other")
        ledger.acknowledged(["q"])
        let lost = TrialVerdict(ledger)
        #expect(lost.shares["one"]?.lost == 0 && lost.shares["other"]?.lost == 1 && !lost.hasPassed)
        ledger.arrived("q", .init(id: "b", at: at(6)))
        #expect(TrialVerdict(ledger).hasPassed)
    }

    @Test("A relay's death excuses what it had promised, where the protocol says so, and nothing later")
    func deaths() {
        func verdict(_ life: Int, _ arrivals: Int) -> TrialVerdict {
            var ledger = TrialLedger(losses: .death, doubles: .death)
            ledger.endLife()
            ledger.promised("p", of: "toy", in: life)
            for number in 0..<arrivals { ledger.arrived("p", .init(id: "", at: at(Int64(number)))) }
            return TrialVerdict(ledger)
        }
        #expect(verdict(0, 0).hasPassed && verdict(0, 0).lostByTheDead == 1 && verdict(0, 2).hasPassed)
        #expect(verdict(1, 0).lost == 1 && verdict(1, 2).doubledWithoutCause == 1)
        // What the ledger has no room for is not excused by anything.
        #expect(verdict(0, TrialLedger.mostArrivals).hasPassed)
        let full = verdict(0, TrialLedger.mostArrivals + 1)
        #expect(full.ledger.unbooked == 1 && !full.hasPassed && full.ledger.foreignArrivals == 0)
    }

    @Test("Every fourth caller asks in a protocol behind the first, and all of them have a turn")
    func callers() {
        let places = { (protocols: Int) in
            (0..<16).map { ChaosPlan.place(ofCaller: $0, among: protocols) }
        }
        #expect(places(1).allSatisfy { $0 == 0 })
        #expect(places(2).count { $0 == 1 } == 4)
        let three = places(3)
        #expect(three.count { $0 == 0 } == 12 && three.count { $0 == 1 } == 2 && three.count { $0 == 2 } == 2)
    }

    @Test("A double is excused only by a kill between its arrivals, shortly after the first, under one name")
    func doubles() {
        let excused = verdict([("a", 900), ("a", 1300)])
        #expect(excused.doubled == 1 && excused.hasPassed)
        #expect(excused.oldestDouble == .milliseconds(100))
        #expect(!verdict([("a", 900), ("b", 1300)]).hasPassed, "two names are two pushes")
        #expect(verdict([("", 900), ("", 1300)]).hasPassed)
        let before = verdict([("a", 800), ("a", 900)])
        #expect(before.doubledWithoutCause == 1 && !before.hasPassed)
        let told = """
            p again after 100 ms, fault before none, fault behind 200 to 400: relay 0 at 1000800 as a, \
            relay 0 at 1000900 as a
            """
        #expect(before.example == told && excused.example == nil)
        #expect(!verdict([("a", 1300), ("a", 1400)]).hasPassed, "both behind the kill")
        #expect(!verdict([("a", -2500), ("a", 1300)]).hasPassed, "long settled when the kill came")
        #expect(!verdict([("a", 900), ("a", 1100)]).hasPassed, "the old relay's own, before it was gone")
        #expect(!verdict([("a", 900), ("a", 1300), ("a", 1400)]).hasPassed, "one kill excuses one double")
    }

    @Test("The order in which arrivals were noted does not matter, nor does that of the kills")
    func order() {
        #expect(verdict([("a", 1300), ("a", 900)]).hasPassed)
        var ledger = TrialLedger()
        ledger.asked(["p"], of: "toy")
        ledger.acknowledged(["p"])
        for moment in [900, 1300, 2300] { ledger.arrived("p", .init(id: "a", at: at(Int64(moment)))) }
        ledger.happened(.init(began: at(2000), ended: at(2200)))
        ledger.happened(.init(began: at(1000), ended: at(1200)))
        #expect(TrialVerdict(ledger).hasPassed)
    }

    @Test("A trial passes only when nothing at all was wrong, and something was acknowledged")
    func report() throws {
        func passes(
            _ outcome: ChaosOutcome = ChaosOutcome(drainedIn: .seconds(1), exitStatus: 0),
            _ change: (inout TrialLedger) -> Void = { _ in }
        ) throws -> Bool {
            var ledger = TrialLedger()
            ledger.asked(["p"], of: "toy")
            ledger.acknowledged(["p"])
            ledger.arrived("p", .init(id: "a", at: at(1)))
            change(&ledger)
            let plan = ChaosPlan(executable: "/bin/true", directory: "/nowhere", seed: 7)
            let (report, hasPassed) = ChaosReport.make(plan, ledger, [], outcome)
            let json = try JSONValue.parse(Array(report.json().utf8))
            #expect(json["passed"] == .bool(hasPassed))
            #expect(json["seed"]?.string == "7")
            return hasPassed
        }
        #expect(try passes())
        #expect(try !passes(ChaosOutcome(drainedIn: nil, exitStatus: 0)))
        #expect(try !passes(ChaosOutcome(drainedIn: .seconds(1), exitStatus: 1)))
        #expect(try !passes(ChaosOutcome(drainedIn: .seconds(1), exitStatus: nil)))
        #expect(try !passes { $0.unexpected(500) })
        #expect(try !passes { $0.arrived("unknown", .init(id: "x", at: at(2))) })
        #expect(try !passes { $0.acknowledged(["p"], areAlive: false) })
        #expect(try !passes { $0 = TrialLedger() }, "nothing was tried")
        #expect(try !passes { $0.asked(["q"], of: "other") }, "one protocol showed nothing")
    }

    @Test("The ledger's file holds a line for each answer, with the row of every name that arrived")
    func file() throws {
        var ledger = TrialLedger()
        ledger.asked(["p", "q"], of: "toy")
        ledger.note(.init(port: 1, sequence: 1, status: 200, marks: ["p"]))
        ledger.keepsAnswers = true
        ledger.note(.init(port: 50_001, sequence: 2, status: 200, marks: ["p", "q"]))
        ledger.note(.init(port: 50_002, sequence: 1, status: 503, marks: []))
        ledger.arrived("p", .init(id: "one", at: at(1)))
        ledger.arrived("p", .init(id: "one", at: at(2)))
        let path = FileManager.default.temporaryDirectory.path + "/ledger-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }  // Litter in a folder for litter.
        try ChaosReport.write(ledger, to: path) { "row of \($0)" }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(
            lines == [
                #"{"port":50001,"sequence":2,"status":200,"pushes":["row of one"]}"#,
                #"{"port":50002,"sequence":1,"status":503,"pushes":[]}"#
            ])
        #expect(throws: BenchError(.fileFault)) {
            try ChaosReport.write(ledger, to: "/nowhere/at/all") { $0 }
        }
    }

    @Test("A seed gives the same numbers again, within the bound, and all of them")
    func random() {
        // SplitMix64's published first values for the seed 1234567.
        let published = TrialRandom(seed: 1_234_567)
        #expect(
            [published.next(), published.next()] == [6_457_827_717_110_365_317, 3_203_168_211_198_807_973])
        let (one, two) = (TrialRandom(seed: 5), TrialRandom(seed: 5))
        let numbers = (0..<1000).map { _ in one.below(7) }
        #expect(numbers == (0..<1000).map { _ in two.below(7) })
        #expect(Set(numbers) == Set(0..<7))
    }
}
