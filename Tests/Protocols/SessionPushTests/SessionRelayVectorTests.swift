import PushTesting
import Testing
import WireFormats

/// The shared vectors of the relay: each case is an argument, in a fresh relay, and each section prints a line.
@Suite("Session vectors of the relay", .timeLimit(.minutes(30)))
struct SessionRelayVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("session.json").map { SessionRelayVectors($0) } }

    @Test("A case of the vectors holds", arguments: try SessionRelayVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try await runner.holds($0) })
    }

    @Test("All sections of the relay have cases")
    func sections() throws {
        #expect(try Self.main.get()?.set.lacks(SessionRelayVectors.sections) ?? [] == [])
    }
}
