import PushModel
import Testing

@testable import Bench

@Suite("What a chaos trial's ledger proves of Status")
struct ChaosStatusTests {
    private typealias Change = (inout ChaosStatusLedger) -> Void

    /// The first relay lives until 10,000, and another after it. Moments in milliseconds.
    private static let end: Int64 = 10_000

    private static func at(_ moment: Int64) -> UnixTime { UnixTime(milliseconds: moment) }

    /// A trial without fault: of the first relay one notification that is taken and one that failed, of the
    /// last one that is taken.
    private func ledger(_ changes: Change...) -> ChaosStatusLedger {
        var ledger = ChaosStatusLedger()
        ledger.didRegister()
        Self.told("old", .taken, in: 0, arriving: [100])(&ledger)
        Self.told("refused", .failed, in: 0)(&ledger)
        ledger.killed(.init(began: Self.at(Self.end - 10), ended: Self.at(Self.end)))
        ledger.waited(isListening: true)
        Self.told("last", .taken, in: Self.end, arriving: [Self.end + 100])(&ledger)
        for change in changes { change(&ledger) }
        return ledger
    }

    /// One request, answered 200 ms after `begin`; arrivals at these moments, one push.
    private static func told(
        _ mark: String, number: Int = 1, _ outcome: ChaosStatusLedger.Outcome?, in begin: Int64,
        arriving moments: [Int64] = []
    ) -> Change {
        { ledger in
            ledger.asked([mark], number: number, at: at(begin + 50))
            if let outcome { ledger.answered(mark, number: number, outcome, at: at(begin + 200)) }
            for moment in moments { ledger.delivered(mark, id: "a", at: at(moment)) }
        }
    }

    @Test("What is taken arrives, what has failed does not")
    func passes() {
        let sound = ledger()
        #expect(sound.hasPassed)
        #expect(sound.verdict.pushes == 3 && sound.taken == 2 && sound.failed == 1)
        #expect(sound.toldToTheLast == 1 && sound.verdict.unpromised == 0 && sound.verdict.doubled == 0)
    }

    @Test("What no answer came to may arrive, also after the relay that was asked, and is counted")
    func unpromised() {
        for moment in [100, Self.end + 900] {
            let early = ledger(Self.told("silent", nil, in: 0, arriving: [moment]))
            #expect(early.hasPassed && early.verdict.unpromised == 1)
        }
    }

    @Test("A push that was under way at a kill may arrive twice")
    func doubledAtKill() {
        let doubled = ledger(Self.told("twice", nil, in: 9_000, arriving: [9_500, Self.end + 300]))
        #expect(doubled.hasPassed && doubled.verdict.doubled == 1)
        // What counts is when the kill began: the dead relay's words may be read late.
        var slow = ledger()
        slow.killed(.init(began: Self.at(12_000), ended: Self.at(18_000)))
        Self.told("twice", nil, in: 11_000, arriving: [11_500, 18_500])(&slow)
        #expect(slow.verdict.doubledWithoutCause == 0 && slow.verdict.doubled == 1)
    }

    @Test("What has failed may be asked for again in other bytes, of the same relay and of a later one")
    func takenAgain() {
        for begin in [1_000, Self.end + 1_000] {
            let insisting = ledger(
                Self.told("refused", number: 2, .taken, in: begin, arriving: [begin + 100]))
            #expect(insisting.hasPassed && insisting.verdict.unpromised == 0)
        }
    }

    @Test(
        """
        A loss, a push after its failure was reported and before, a double without a kill or long before one, \
        a report that is not true, a refusal, silence, a relay that does not listen, what nobody can read: \
        each is a fault
        """)
    func fails() {
        let faults: [Change] = [
            Self.told("lost", .taken, in: 0), Self.told("lost", .taken, in: Self.end),
            { $0.delivered("refused", id: "b", at: Self.at(900)) },
            { $0.delivered("refused", id: "b", at: Self.at(150)) },
            // Each of two requests has failed before it.
            Self.told("refused", number: 2, .failed, in: 1_000, arriving: [1_900]),
            // A later relay took it again from the network's store, whatever it said then.
            { $0.delivered("refused", id: "b", at: Self.at(Self.end + 600)) },
            { ledger in
                ledger.delivered("refused", id: "b", at: Self.at(Self.end + 600))
                ledger.answered("refused", number: 1, .taken, at: Self.at(Self.end + 700))
            },
            // What one relay has sent, a later one reported as failed.
            { ledger in
                Self.told("late", nil, in: 9_000, arriving: [9_500])(&ledger)
                ledger.answered("late", number: 1, .failed, at: Self.at(Self.end + 600))
            },
            Self.told("twice", .taken, in: 0, arriving: [100, 900]),
            Self.told("twice", .taken, in: 0, arriving: [100, Self.end + 100]),
            Self.told("odd", .wrong, in: 0), { $0.wasRefused() }, { $0.wasNeverAnswered() },
            { $0.waited(isListening: false) }, { $0.couldNotRead() },
            { $0.delivered("foreign", id: "c", at: Self.at(1)) },
            { $0.answered("old", number: 9, .taken, at: Self.at(1)) },
            // Nothing was told to the last.
            { $0.killed(.init(began: Self.at(2 * Self.end), ended: Self.at(2 * Self.end))) }
        ]
        for (number, fault) in faults.enumerated() {
            let faulty = ledger(fault)
            #expect(!faulty.hasPassed, "\(number)")
        }
    }

    @Test("A trial that showed nothing, or no failure, has not passed")
    func empty() {
        #expect(!ChaosStatusLedger().hasPassed)
        var ledger = ChaosStatusLedger()
        ledger.didRegister()
        ledger.waited(isListening: true)
        Self.told("last", .taken, in: 0, arriving: [100])(&ledger)
        #expect(!ledger.hasPassed)
        Self.told("refused", .failed, in: 0)(&ledger)
        #expect(ledger.hasPassed)
    }

    @Test("A notification is known in the bodies of both push services, and in no other")
    func marks() {
        let apple = #"{"aps":{"alert":"x"},"encryptedMessage":"0x01","chatId":"0x"}"#
        let google = #"{"message":{"token":"t","data":{"encryptedMessage":"0x02"}}}"#
        #expect(ChaosStatusPhone.mark(in: Array(apple.utf8)) == "0x01")
        #expect(ChaosStatusPhone.mark(in: Array(google.utf8)) == "0x02")
        for text in ["", "[]", "{}", #"{"message":"0x03"}"#, #"{"encryptedMessage":4}"#] {
            #expect(ChaosStatusPhone.mark(in: Array(text.utf8)) == nil)
        }
    }
}
