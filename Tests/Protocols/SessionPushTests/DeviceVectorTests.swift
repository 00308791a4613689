import PushTesting
import Testing

@Suite("Session vectors of the device", .timeLimit(.minutes(30)))
struct DeviceVectorTests {
    /// `nil` when a directory was named that has no such file.
    static let main = Result { try VectorFile.load("session.json").map(DeviceVectors.init) }

    @Test("A case of the vectors holds", arguments: try DeviceVectorTests.main.get()?.set.cases ?? [])
    func holds(_ vector: VectorCase) async throws {
        let runner = try #require(try Self.main.get())
        #expect(try await runner.set.run(vector) { try runner.holds($0) ? $0.rows : 0 })
    }

    @Test("Each section of the device's has cases")
    func sections() throws {
        #expect(
            try Self.main.get()?.set.lacks([
                "push", "onion (device)", "published (device)", "subscribe (device)", "unsubscribe (device)"
            ]) ?? [] == [])
    }
}
