import PushTesting

/// Asks a server until it names somebody: a session that waits, or holds a lock.
func named(
    _ what: String, file: String = #fileID, line: Int = #line, by question: () async throws -> String
) async throws -> String {
    var name = ""
    try await asked(for: what, file: file, line: line) {
        name = try await question()
        return !name.isEmpty
    }
    return name
}
