package import AtRest
package import MemoryStore
package import PushModel

/// A store for tests: rows in memory, with the at-rest ciphers on top.
package struct SealedMemory: Sendable {
    package let engine: MemoryStore
    package let store: SealedStore
    private let shared: MemoryStore.Shared
    private let keys: AtRestKeys

    /// - Parameter rows: how many pushes it owes at most.
    package init(
        _ world: World, rows: Int = 10_000, journal: Journal = .silent
    ) async throws {
        try await self.init(
            world, 1, MemoryStore.Shared(rows: rows), AtRestKeys.generate(world), journal: journal)
    }

    /// The same store as another process opens it.
    ///
    /// - Parameter number: of that process; the first has 1.
    package func open(_ world: World, as number: UInt64) async throws -> SealedMemory {
        try await SealedMemory(world, number, shared, keys, journal: .silent)
    }

    private init(
        _ world: World, _ number: UInt64, _ shared: MemoryStore.Shared, _ keys: AtRestKeys, journal: Journal
    ) async throws {
        (self.shared, self.keys) = (shared, keys)
        engine = MemoryStore(
            owner: OwnerID(Digest16(high: number, low: 1)), sharing: shared, clock: world.now)
        store = try await SealedStore(engine: engine, keys: keys, world: world, journal: journal)
    }
}
