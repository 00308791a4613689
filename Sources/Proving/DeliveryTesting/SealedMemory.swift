package import AtRest
package import MemoryStore
package import PushModel

/// The store of a test: rows in memory, and the at-rest ciphers above them.
package struct SealedMemory: Sendable {
    package let engine: MemoryStore
    package let store: SealedStore

    /// - Parameter rows: how many pushes it owes at most.
    package init(
        _ world: World, rows: Int = 10_000, journal: Journal = .silent
    ) async throws {
        engine = MemoryStore(
            owner: OwnerID(Digest16(high: 1, low: 1)), sharing: MemoryStore.Shared(rows: rows),
            clock: world.now)
        store = try await SealedStore(
            engine: engine, keys: AtRestKeys.generate(world), world: world, journal: journal)
    }
}
