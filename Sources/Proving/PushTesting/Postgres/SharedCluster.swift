extension PostgresCluster {
    private enum Shared: Sendable {
        case none, starting
        case running(PostgresCluster)
    }

    private static let state = Noted(Shared.none)

    /// One cluster for all tests of a process, started by the first that asks and ended with the process. A
    /// test that stops or crashes its server takes one of its own.
    package static var shared: PostgresCluster {
        get async throws {
            while true {
                let isOurs = state.change { state in
                    guard case .none = state else { return false }
                    state = .starting
                    return true
                }
                if isOurs {
                    do {
                        let cluster = try await start()
                        state.set(.running(cluster))
                    } catch {
                        // The next one that asks tries again, because this one may have been cancelled.
                        state.set(.none)
                        throw error
                    }
                }
                await state.until { if case .starting = $0 { false } else { true } }
                if case .running(let cluster) = state.value { return cluster }
                try Task.checkCancellation()
            }
        }
    }
}
