import PushTesting
import Testing
import WireFormats

/// The shared vectors of devices and origins: each case is an argument, and each section prints a line.
/// Those of the relay run beside it.
@Suite("Nextcloud vectors of the ends", .timeLimit(.minutes(30)))
struct EndVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("nextcloud.json").map(NextcloudEndVectors.init) }

    @Test("A case of the vectors holds", arguments: try EndVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Each section of the vectors has cases, and is one of the ends' or of the relay's")
    func sections() throws {
        guard let runner = try Self.main.get() else { return }
        let frame = NextcloudEndVectors.frame.union(NextcloudEndVectors.ofRelay)
        let names = runner.json.object?.names.filter { !frame.contains($0) } ?? []
        #expect(!names.isEmpty, "the sections were not found")
        #expect(runner.set.lacks(names) == [], "unknown, or no row")
    }
}
