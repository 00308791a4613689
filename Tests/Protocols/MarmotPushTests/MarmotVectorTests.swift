import PushTesting
import Testing
import WireFormats

/// The shared vectors of this protocol: each case is an argument, and each section prints a line.
@Suite("Marmot vectors", .timeLimit(.minutes(30)))
struct MarmotVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("marmot.json").map(MarmotVectorRunner.init) }
    /// `nil` where the file is not to be had.
    static let official = Result {
        try VectorFile.foreign("nip44.vectors.json").map { try OfficialNIP44(#require($0["v2"])) }
    }

    @Test("A case of the vectors holds", arguments: try MarmotVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try await runner.holds($0) ? 1 : 0 })
    }

    @Test(
        "A case of the official vectors of NIP-44 holds, where they are to be had",
        arguments: try MarmotVectorTests.official.get()?.set.cases ?? [])
    func officialHolds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.official.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? 1 : 0 })
    }

    @Test("Each section of the vectors has cases")
    func sections() throws {
        if let runner = try Self.main.get() {
            let names = runner.json.object?.names.filter { !MarmotVectorRunner.frame.contains($0) } ?? []
            #expect(!names.isEmpty, "the sections were not found")
            for section in names {
                if MarmotVectorRunner.notYet.contains(section) {
                    VectorFile.say("vectors \(runner.set.title) \(section) not yet")
                } else {
                    // What is not known has failed as an argument.
                    for part in MarmotVectorRunner.parts(section, runner.json) {
                        #expect(!part.isEmpty, "\(section): a list without a row")
                    }
                }
            }
        }
        guard let official = try Self.official.get() else { return }
        #expect(official.set.lacks(try official.sections()) == [])
    }
}
