import Testing
import WireFormats

/// The shared vectors of this protocol; one printed line for each section.
@Suite("Zulip vectors")
struct VectorTests {
    @Test("Every section of the vectors runs whole and passes", .timeLimit(.minutes(5)))
    func sections() async throws {
        guard case .file(let file) = try VectorFile.load("zulip.json") else { return }
        let runner = try VectorRunner(file)
        for section in file.json.object?.names ?? [] where !VectorRunner.frame.contains(section) {
            if VectorRunner.notYet.contains(section) {
                VectorFile.say("vectors zulip/\(file.set) \(section) not yet")
                continue
            }
            guard let (passed, total) = try await runner.run(section) else {
                Issue.record("unknown section \(section)")
                continue
            }
            VectorFile.say("vectors zulip/\(file.set) \(section) \(passed)/\(total)")
            #expect(total > 0, "\(section) ran no row")
            #expect(passed == total, "\(section)")
        }
    }
}
