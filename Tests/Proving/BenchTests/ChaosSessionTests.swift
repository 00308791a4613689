import PushModel
import Testing

@testable import Bench

@Suite("What a chaos trial's ledger proves of Session")
struct ChaosSessionTests {
    private typealias Key = ChaosSessionLedger.Key

    private static let old = Key(token: "phone", hash: "old")
    private static let last = Key(token: "phone", hash: "last")

    /// A trial without fault: one message told to a relay that was killed, one to the last.
    private func ledger(_ change: (inout ChaosSessionLedger) -> Void = { _ in }) -> ChaosSessionLedger {
        var ledger = ChaosSessionLedger()
        ledger.subscribed([5, 1])
        ledger.looked(missing: 0)
        ledger.told("old", to: ["phone", "other"], in: 0)
        ledger.killed()
        ledger.looked(missing: 0)
        ledger.told("last", to: ["phone"], in: 1)
        ledger.delivered(Self.last, id: "a")
        change(&ledger)
        return ledger
    }

    @Test("What a dead relay was told may be lost, or sent twice under one name, and is counted")
    func passes() {
        let sound = ledger()
        #expect(sound.hasPassed && sound.verdict.lostByTheDead == 2)
        #expect(sound.verdict.arrived == 1 && sound.verdict.ofTheLast == 1)
        let doubled = ledger { ledger in
            for _ in 0..<2 { ledger.delivered(Self.old, id: "b") }
        }
        #expect(doubled.hasPassed && doubled.verdict.doubled == 1 && doubled.verdict.doubledWithoutCause == 0)
        #expect(doubled.verdict.lostByTheDead == 1)
    }

    @Test("A phone whose subscription is not acknowledged yet may be woken, and is counted")
    func early() {
        let early = ledger { $0.delivered(Key(token: "new", hash: "last"), id: "c") }
        #expect(early.hasPassed && early.book.foreignArrivals == 1)
    }

    @Test(
        """
        A subscription that is not shown again, a loss or a double of the last, two names, a refusal, what \
        does not open: each is a fault
        """)
    func fails() {
        let faults: [(inout ChaosSessionLedger) -> Void] = [
            { $0.looked(missing: 1) }, { $0.told("late", to: ["phone"], in: 1) },
            { $0.delivered(Self.last, id: "a") }, { $0.delivered(Self.last, id: "") },
            { for id in ["b", "c"] { $0.delivered(Self.old, id: id) } }, { $0.wasRefused() },
            { $0.couldNotOpen() },
            // Nothing was told to the last.
            { $0.killed() }
        ]
        for (number, fault) in faults.enumerated() {
            let faulty = ledger(fault)
            #expect(!faulty.hasPassed, "\(number)")
        }
    }

    @Test("A trial that showed nothing has not passed")
    func empty() { #expect(!ChaosSessionLedger().hasPassed) }
}
