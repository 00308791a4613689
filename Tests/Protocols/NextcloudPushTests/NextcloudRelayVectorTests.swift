import PushTesting
import Testing
import WireFormats

/// The shared vectors of the relay: each case is an argument, and each section prints a line. Those of
/// devices and origins run beside it.
@Suite("Nextcloud vectors of the relay", .timeLimit(.minutes(30)))
struct NextcloudRelayVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("nextcloud.json").map(NextcloudRelayVectors.init) }

    @Test("A case of the vectors holds", arguments: try NextcloudRelayVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try await runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Both sections of the relay have cases")
    func sections() throws {
        #expect(try Self.main.get()?.set.lacks(NextcloudRelayVectors.sections) ?? [] == [])
    }
}
