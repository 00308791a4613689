import PushModel
import Testing

@testable import Bench

@Suite("What a chaos trial's ledger proves of Marmot")
struct ChaosMarmotTests {
    private let moment = UnixTime(milliseconds: 1_000_000)

    /// A trial without fault: one trigger of a relay that was killed, one of the last.
    private func ledger(_ change: (inout ChaosMarmotLedger) -> Void = { _ in }) -> ChaosMarmotLedger {
        var ledger = ChaosMarmotLedger()
        ledger.waited(isListening: true, hasList: true)
        ledger.published("lost", in: 0)
        ledger.killed()
        ledger.waited(isListening: true, hasList: true)
        ledger.published("told", in: 1)
        _ = ledger.delivered("told", at: moment)
        ledger.searched(files: 3, hits: 0)
        change(&ledger)
        return ledger
    }

    @Test("What a killed relay had may be lost, and is counted; a foreign device is not ours")
    func passes() {
        var sound = ledger()
        #expect(sound.hasPassed && sound.verdict.lostByTheDead == 1)
        #expect(sound.verdict.arrived == 1 && sound.verdict.ofTheLast == 1)
        let isOurs = sound.delivered("nobody's", at: moment)
        #expect(!isOurs)
    }

    @Test("What was begun under a relay that was killed before it was out is that relay's")
    func overtaken() {
        let overtaken = ledger { $0.published("overtaken", in: 0) }
        #expect(overtaken.hasPassed && overtaken.verdict.lostByTheDead == 2)
    }

    @Test(
        "A double, a loss of the last, a relay that does not come back, a trace on the disk: each is a fault")
    func fails() {
        let moment = moment
        let faults: [(inout ChaosMarmotLedger) -> Void] = [
            { _ = $0.delivered("told", at: moment) },
            // A later relay knows nothing of what an earlier one did; nobody tells it again either.
            { for _ in 0..<2 { _ = $0.delivered("lost", at: moment) } }, { $0.published("late", in: 1) },
            { $0.waited(isListening: false, hasList: false) },
            { $0.waited(isListening: true, hasList: false) }, { $0.searched(files: 1, hits: 1) },
            // Nothing was told to the last.
            { $0.killed() }
        ]
        for fault in faults {
            let faulty = ledger(fault)
            #expect(!faulty.hasPassed)
        }
    }

    @Test("A trial that showed nothing has not passed")
    func empty() { #expect(!ChaosMarmotLedger().hasPassed) }
}
