import PushModel
import PushTesting
import Synchronization
import Testing

@testable import RelayProgram

@Suite("How far long commands say that they are", .timeLimit(.minutes(30)))
struct ProgressTests {
    @Test("A line says how much is done, of how much, and which part, where it is known")
    func line() {
        func line(_ count: Int, _ whole: WorkDone.Whole) -> String {
            WorkDone(count: count, words: "rows", whole: whole).line
        }
        #expect(line(12, .unknown) == "12 rows")
        #expect(line(12, .rows(48)) == "12 of 48 rows, 25 %")
        #expect(line(47, .rows(48)) == "47 of 48 rows, 97 %", "nothing is whole before it is")
        #expect(line(48, .rows(48)) == "48 of 48 rows, 100 %")
        #expect(line(0, .rows(0)) == "0 of 0 rows, 100 %")
        #expect(line(49, .rows(48)) == "49 rows", "more came than were counted")
        #expect(line(12, .share(0.256)) == "12 rows, 25 %")
        #expect(line(12, .share(1.5)) == "12 rows, 100 %")
    }

    @Test("The part of a walk through records grows with their keys, from nothing to all")
    func share() {
        #expect(Digest16(high: 0, low: .max).share == 0)
        #expect(Digest16(high: 1 << 62, low: 0).share == 0.25)
        #expect(Digest16(high: .max, low: .max).share <= 1)
    }

    /// What a teller of 250 steps, ten a second, shows on a terminal and elsewhere.
    private func told(
        terminal: Bool, _ elsewhere: ProgressTeller.Elsewhere
    ) -> (terminal: [String], err: [String], out: [String]) {
        let (shown, out, err) = (Lines(), Lines(), Lines())
        let passed = Mutex(0)
        var world = World.live
        let start = world.instant()
        world.instant = { start + .milliseconds(100 * passed.withLock(\.self)) }
        var shell = Shell(facts: facts(), world: world, out: { out.add($0) }, err: { err.add($0) })
        if terminal { shell.progress = { shown.add($0) } }
        let teller = ProgressTeller(shell, elsewhere: elsewhere)
        for step in 0..<250 {
            passed.withLock { $0 = step }
            let words = step < 125 ? "records copied" : "owed pushes copied"
            teller.tell(WorkDone(count: step, words: words, whole: .rows(250)))
        }
        teller.end()
        return (shown.all, err.all, out.all)
    }

    @Test("On a terminal one line counts up, once a second and at each stage, and is gone at the end")
    func terminal() {
        for elsewhere in [ProgressTeller.Elsewhere.lines, .nothing] {
            let told = told(terminal: true, elsewhere)
            #expect(told.err.isEmpty && told.out.isEmpty)
            #expect(told.terminal.first == "0 of 250 records copied, 0 %" && told.terminal.last == "")
            #expect(told.terminal.contains("125 of 250 owed pushes copied, 50 %"), "the second stage")
            #expect(told.terminal.count == 13 + 13 + 1, "\(told.terminal)")
        }
    }

    @Test("Elsewhere there are whole lines without control characters, or none")
    func elsewhere() {
        let lines = told(terminal: false, .lines)
        #expect(lines.terminal.isEmpty && lines.out.isEmpty && lines.err.count == 13 + 13)
        for line in lines.err {
            #expect(!line.isEmpty && line.unicodeScalars.allSatisfy { (0x20...0x7E).contains($0.value) })
        }
        let silent = told(terminal: false, .nothing)
        #expect(silent.terminal.isEmpty && silent.out.isEmpty && silent.err.isEmpty)
    }
}
