/// Does what must be done at the end, however `body` ends.
func ending<Result>(
    _ end: () async -> Void, after body: () async throws -> Result
) async throws -> Result {
    do {
        let result = try await body()
        await end()
        return result
    } catch {
        await end()
        throw error
    }
}
