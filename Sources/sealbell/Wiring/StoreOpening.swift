import AtRest
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import MemoryStore
import PushModel
import SQLiteStore

/// The store of a relay, opened: registry and outbox over sealed rows, and the service that keeps the file
/// tidy.
struct OpenStore {
    let sealed: SealedStore
    /// `nil` in memory.
    let sqlite: SQLiteStore?
    /// For an operator's questions.
    let lookup: any OwedLookup

    /// - Throws: `CommandFailure` that says what to do.
    static func open(
        _ store: StoreConfiguration, limits: LimitsConfiguration, synchronous: Synchronous, world: World,
        journal: Journal, engine watch: (any Engine) -> any Engine = { $0 }
    ) async throws(CommandFailure) -> OpenStore {
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        switch store.engine {
        case .memory:
            let engine = MemoryStore(owner: owner, clock: world.now)
            return try await seal(watch(engine), nil, engine, AtRestKeys.generate(world), world, journal)
        case .sqlite(let path):
            let keys = try keys(store.keysFile, database: path, world)
            var bounds = SQLiteLimits()
            bounds.outboxRows = limits.outboxRows
            bounds.outboxBytes = Int(limits.outboxBytes)
            let engine: SQLiteStore
            do throws(StoreError) {
                engine = try SQLiteStore(
                    path: path, owner: owner, limits: bounds, synchronous: synchronous, world: world)
            } catch {
                throw failure(error, path)
            }
            return try await seal(watch(engine), engine, engine, keys, world, journal)
        }
    }

    private static func seal(
        _ engine: any Engine, _ sqlite: SQLiteStore?, _ lookup: any OwedLookup, _ keys: AtRestKeys,
        _ world: World, _ journal: Journal
    ) async throws(CommandFailure) -> OpenStore {
        do throws(StoreError) {
            let sealed = try await SealedStore(engine: engine, keys: keys, world: world, journal: journal)
            return OpenStore(sealed: sealed, sqlite: sqlite, lookup: lookup)
        } catch {
            throw failure(error, "the store")
        }
    }

    /// The keys of the file; fresh ones only for a database that is not there yet, since a new key file
    /// beside an old database could open nothing in it.
    private static func keys(
        _ path: String, database: String, _ world: World
    ) throws(CommandFailure) -> AtRestKeys {
        let isThere = access(path, F_OK) == 0
        if !isThere, access(database, F_OK) == 0 {
            throw CommandFailure(
                .configuration, "\(path) is not there, and \(database) is: put back the keys that sealed it.")
        }
        do throws(KeyFileError) {
            return isThere ? try KeyFile.read(path) : try KeyFile.create(path, world)
        } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }

    private static func failure(_ error: StoreError, _ what: String) -> CommandFailure {
        CommandFailure(error.blame == .operator ? .configuration : .unavailable, "\(what): \(error.sentence)")
    }
}
