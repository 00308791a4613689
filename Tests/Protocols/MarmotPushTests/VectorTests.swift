import Testing
import WireFormats

/// The shared vectors of this protocol; one printed line for each section.
@Suite("Marmot vectors", .timeLimit(.minutes(30)))
struct VectorTests {
    @Test("Every section of the vectors runs whole and passes", .timeLimit(.minutes(30)))
    func sections() async throws {
        guard case .file(let file) = try VectorFile.load("marmot.json") else { return }
        let runner = VectorRunner(file)
        for section in file.json.object?.names ?? [] where !VectorRunner.frame.contains(section) {
            if VectorRunner.notYet.contains(section) {
                VectorFile.say("vectors marmot/\(file.set) \(section) not yet")
                continue
            }
            guard let (passed, total) = try await runner.run(section) else {
                Issue.record("unknown section \(section)")
                continue
            }
            VectorFile.say("vectors marmot/\(file.set) \(section) \(passed)/\(total)")
            #expect(total > 0, "\(section) ran no row")
            #expect(passed == total, "\(section)")
        }
    }

    @Test("The official vectors of NIP-44 pass, where they are to be had", .timeLimit(.minutes(30)))
    func official() throws {
        guard let file = try VectorFile.official() else { return }
        let runner = OfficialNIP44(json: try #require(file["v2"]))
        for (section, count) in try runner.run() {
            VectorFile.say("vectors nip44/official \(section) \(count.passed)/\(count.total)")
            #expect(count.total > 0, "\(section) ran no row")
            #expect(count.passed == count.total, "\(section)")
        }
    }
}
