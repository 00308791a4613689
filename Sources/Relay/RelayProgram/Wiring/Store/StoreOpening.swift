import AtRest
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import MemoryStore
import PostgresStore
import PushModel
import SQLiteStore
import ServiceLifecycle

/// The store of a relay, opened: registry and outbox over sealed rows, and the service that keeps the file
/// tidy.
struct OpenStore {
    let sealed: SealedStore
    /// Housekeeping of the engine's own.
    let housekeeping: [any Service]
    /// Gives up the lease, where others may take over, and closes files and connections; after everything
    /// else.
    let close: @Sendable () async -> Void
    /// For an operator's questions.
    let lookup: any OwedLookup
    /// Who shares the store; `nil` in memory, which nobody shares.
    let notes: (any StoreSettings)?
    /// `nil` in memory, whose keys nobody has.
    let seals: SealKeyService?

    /// - Throws: `CommandFailure` that says what to do.
    static func open(
        _ store: StoreConfiguration, limits: LimitsConfiguration, synchronous: Synchronous, world: World,
        journal: Journal, services: PushServices = .standard, share: AppShare = AppShare(),
        rotation: SealKeyRotation.Limits = SealKeyRotation.Limits(),
        engine watch: (any Engine) -> any Engine = { $0 }
    ) async throws(CommandFailure) -> OpenStore {
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        func seals(_ sealed: SealedStore, _ engine: any SealKeyRotation.Upkeep) -> SealKeyService {
            SealKeyService(
                SealKeyRotation(sealed, engine, limits: rotation), file: store.keysFile, world, journal)
        }
        switch store.engine {
        case .memory:
            let engine = MemoryStore(
                owner: owner, sharing: MemoryStore.Shared(share: share), clock: world.now)
            let keys = AtRestKeys.generate(world)
            let sealed = try await seal(watch(engine), keys, services, world, journal, upkeep: nil)
            return OpenStore(
                sealed: sealed, housekeeping: [], close: {}, lookup: engine, notes: nil, seals: nil)
        case .sqlite(let path):
            let keys = try keys(store.keysFile, database: path, world)
            var bounds = SQLiteLimits()
            bounds.outboxRows = limits.outboxRows
            bounds.outboxBytes = Int(limits.outboxBytes)
            bounds.share = share
            let engine: SQLiteStore
            do throws(StoreError) {
                engine = try SQLiteStore(
                    path: path, owner: owner, limits: bounds, synchronous: synchronous, world: world,
                    journal: journal)
            } catch {
                // No waiting mends that.
                if error.code == .unavailable, let file = DatabaseFiles(path).closed {
                    throw CommandFailure(.configuration, "\(file): \(DatabaseFiles.closedSentence)")
                }
                throw failure(error, path)
            }
            let sealed: SealedStore
            do throws(CommandFailure) {
                sealed = try await seal(watch(engine), keys, services, world, journal, upkeep: engine)
            } catch {
                // A log that is left beside the file must not outlive the start.
                try? engine.close()
                throw error
            }
            return OpenStore(
                sealed: sealed, housekeeping: [SQLiteService(engine)],
                close: {
                    // A file that does not close was synced with its last commit all the same.
                    try? engine.close()
                }, lookup: engine, notes: engine, seals: seals(sealed, engine))
        case .postgres(let url, let passwordFile):
            let keys = try standingKeys(store.keysFile)
            var bounds = PostgresLimits()
            bounds.outboxRows = limits.outboxRows
            bounds.outboxBytes = Int(limits.outboxBytes)
            bounds.share = share
            let engine = try await connect(
                url, passwordFile, owner, bounds, synchronous: synchronous, world, journal)
            do throws(CommandFailure) {
                let sealed = try await seal(watch(engine), keys, services, world, journal, upkeep: engine)
                return OpenStore(
                    sealed: sealed, housekeeping: [PostgresService(engine)], close: { await engine.close() },
                    lookup: engine, notes: engine, seals: seals(sealed, engine))
            } catch {
                await engine.close()
                throw error
            }
        }
    }

    private static func connect(
        _ url: String, _ passwordFile: String?, _ owner: OwnerID, _ limits: PostgresLimits,
        synchronous: Synchronous, _ world: World, _ journal: Journal
    ) async throws(CommandFailure) -> PostgresStore {
        let address = try StorePlace.address(url, passwordFile)
        do throws(StoreError) {
            return try await PostgresStore(
                address, owner: owner, limits: limits, synchronous: synchronous, world: world,
                journal: journal)
        } catch {
            throw failure(error, address.description)
        }
    }

    /// The keys of a database that others may use too: never fresh ones, because each of several relays that
    /// start at once would make its own.
    private static func standingKeys(_ path: String) throws(CommandFailure) -> AtRestKeys {
        do throws(KeyFileError) { return try KeyFile.read(path) } catch {
            let cure =
                access(path, F_OK) == 0
                ? error.coded
                : "There are no storage keys. Make them once with sealbell keys new storage, and give each "
                    + "relay of this database a copy."
            throw CommandFailure(.configuration, "\(path): \(cure)")
        }
    }

    private static func seal(
        _ engine: any Engine, _ keys: AtRestKeys, _ services: PushServices, _ world: World,
        _ journal: Journal,
        upkeep: (any StoredRows & StoreSettings)?
    ) async throws(CommandFailure) -> SealedStore {
        do throws(StoreError) {
            return try await SealedStore(
                engine: engine, keys: keys, world: world, journal: journal, services: services,
                upkeep: upkeep)
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
            throw CommandFailure(.configuration, "\(path): \(error.coded)")
        }
    }

    private static func failure(_ error: StoreError, _ what: String) -> CommandFailure {
        // As of a state directory that another relay has: waiting or stopping that one helps, no key does.
        let isHere = error.blame == .operator && error.code != .inUse
        return CommandFailure(isHere ? .configuration : .unavailable, "\(what): \(error.coded)")
    }
}

/// Runs the file's housekeeping, and empties the log once everything above it has stopped.
private struct SQLiteService: Service {
    private let store: SQLiteStore
    init(_ store: SQLiteStore) { self.store = store }

    func run() async throws {
        try await store.run()
        // Where a reader of another program is in the way, the next start empties the log.
        try? await store.forgetNow()
    }
}

/// Sweeps what no longer counts in the database.
private struct PostgresService: Service {
    private let store: PostgresStore
    init(_ store: PostgresStore) { self.store = store }

    func run() async throws { try await store.run() }
}
