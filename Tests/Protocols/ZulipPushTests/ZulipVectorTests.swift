import PushTesting
import Testing
import WireFormats

/// The shared vectors of this protocol: each case is an argument, and each section prints a line.
@Suite("Zulip vectors", .timeLimit(.minutes(30)))
struct ZulipVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("zulip.json").map(ZulipVectorRunner.init) }
    /// `scripts/interop/zulip/vectors_odd.py` makes it, and others like it.
    static let odd = Result {
        try ZulipVectorRunner(VectorFile.read(VectorFile.own("Vectors/odd/zulip.json")))
    }

    @Test("A case of the vectors holds", arguments: try ZulipVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try await runner.passed($0) })
    }

    /// Where a directory is named, that one stands for all.
    @Test(
        "So does a case of a second set, of odd data and orders of checks",
        .enabled(if: !VectorFile.isNamed), arguments: try ZulipVectorTests.odd.get().set.cases)
    func oddHolds(_ vector: VectorCase) async throws {
        let runner = try Self.odd.get()
        #expect(try await runner.set.run(vector) { try await runner.passed($0) })
    }

    @Test("Each section of the vectors has cases")
    func sections() throws {
        guard let runner = try Self.main.get() else { return }
        for runner in VectorFile.isNamed ? [runner] : [runner, try Self.odd.get()] {
            let names = runner.json.object?.names.filter { !ZulipVectorRunner.frame.contains($0) } ?? []
            #expect(!names.isEmpty, "the sections were not found")
            #expect(runner.set.lacks(names) == [], "unknown, or no row")
        }
    }
}
