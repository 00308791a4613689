import Testing
import WireFormats

/// The shared vectors of this protocol; one printed line for each section.
@Suite("Zulip vectors", .timeLimit(.minutes(30)))
struct VectorTests {
    @Test("Every section of the vectors runs whole and passes", .timeLimit(.minutes(30)))
    func sections() async throws {
        guard case .file(let file) = try VectorFile.load("zulip.json") else { return }
        try await run(file)
    }

    /// `scripts/interop/vectors_odd.py` makes it, and others like it. Where a directory is named, that one
    /// stands for all.
    @Test(
        "So does a second set, of odd data and orders of checks", .enabled(if: !VectorFile.isNamed),
        .timeLimit(.minutes(30)))
    func odd() async throws {
        try await run(VectorFile.read(VectorFile.own("Vectors/odd/zulip.json")))
    }

    private func run(_ file: VectorFile) async throws {
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
