import PushTesting
import Testing

@Suite("Status vectors of ciphers and messages", .timeLimit(.minutes(30)))
struct WireVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("status.json").map { try WireVectors($0) } }

    @Test("A case of the vectors holds", arguments: try WireVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Each section has cases")
    func sections() throws {
        #expect(try Self.main.get()?.set.lacks(WireVectors.sections) ?? [] == [])
    }
}
