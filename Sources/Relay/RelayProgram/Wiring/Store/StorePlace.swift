#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PostgresStore
import PushModel
import SQLiteStore

/// A store that a command line names: `sqlite:PATH`, the path from the working directory, or
/// `postgresql://USER@HOST/DATABASE`.
enum StorePlace: Sendable, Hashable {
    case sqlite(path: String)
    case postgres(PostgresAddress)

    /// - Throws: usage, when it is neither.
    init(_ text: String, _ facts: ProcessFacts, passwordFile: String? = nil) throws(CommandFailure) {
        if text.hasPrefix("postgresql:") || text.hasPrefix("postgres:") {
            let file = passwordFile.map { joinPath(facts.workingDirectory, $0) }
            self = .postgres(try Self.address(text, file))
            return
        }
        guard text.hasPrefix("sqlite:"), text != "sqlite:", !text.hasPrefix("sqlite://") else {
            throw CommandFailure(
                .usage, "A store is named as sqlite:PATH, or as postgresql://USER@HOST/DATABASE.")
        }
        self = .sqlite(path: joinPath(facts.workingDirectory, String(text.dropFirst("sqlite:".count))))
    }

    /// The store of a configuration.
    init(_ engine: StoreConfiguration.Engine) throws(CommandFailure) {
        switch engine {
        case .sqlite(let path): self = .sqlite(path: path)
        case .postgres(let url, let file): self = .postgres(try Self.address(url, file))
        case .memory: throw CommandFailure(.usage, "A store in memory is gone when its relay ends.")
        }
    }

    /// A URL and its password, which stands in a file of its own, or where libpq finds it.
    static func address(_ url: String, _ passwordFile: String?) throws(CommandFailure) -> PostgresAddress {
        let password = try passwordFile.map { (path) throws(CommandFailure) in
            try CredentialCache.read(path).trimmed
        }
        let address = try self.address(url, password: nil)
        guard !address.holdsSecret else {
            throw CommandFailure(
                .usage,
                "No password in a URL, where every user of the machine may see it: put it into a file.")
        }
        guard let password else { return address }
        return try self.address(url, password: password)
    }

    private static func address(_ url: String, password: Secret?) throws(CommandFailure) -> PostgresAddress {
        do throws(StoreError) { return try PostgresAddress(url, password: password) } catch {
            guard error.code != .unavailable else {
                throw CommandFailure(.unavailable, PostgresAddress.missingLibrary)
            }
            throw CommandFailure(.usage, "A database is named as postgresql://USER@HOST/DATABASE.")
        }
    }

    /// For sentences; no password is in it.
    var name: String {
        switch self {
        case .sqlite(let path): path
        case .postgres(let address): address.description
        }
    }

    /// A store that this process holds alone, as far as its engine can tell, until it is closed.
    struct Held: Sendable {
        let store: any StoreCopier.Store
        let close: @Sendable () async -> Void
    }

    /// - Parameter makes: whether a database that is not there is made.
    func hold(makes: Bool, _ world: World) async throws(CommandFailure) -> Held {
        let owner = OwnerID(Digest16(high: world.random(), low: world.random()))
        if case .sqlite(let path) = self, !makes, access(path, F_OK) != 0 {
            throw CommandFailure(.failed, "\(path): There is no such file.")
        }
        do throws(StoreError) {
            switch self {
            case .sqlite(let path):
                let store = try SQLiteStore(path: path, owner: owner, world: world)
                return Held(store: store) {
                    // What is in it was synced with its last commit; the log is emptied by the next start.
                    try? await store.forgetNow()
                    try? store.close()
                }
            case .postgres(let address):
                var limits = PostgresLimits()
                // A command asks one thing after the other.
                limits.connections = 2
                let store = try await PostgresStore(address, owner: owner, limits: limits, world: world)
                return Held(store: store) { await store.close() }
            }
        } catch {
            throw failure(error)
        }
    }

    func failure(_ error: StoreError) -> CommandFailure {
        switch error.code {
        case .inUse:
            CommandFailure(
                .unavailable,
                "\(name): A relay serves from it, or another command has it. Stop it first. "
                    + "[\(error.codeText)]")
        case .unavailable, .noSpace, .readOnly, .uncertain, .full:
            CommandFailure(.unavailable, "\(name): \(error.coded)")
        case .corrupt, .wrongKey, .newerSchema, .halfMigrated, .denied, .notDurable, .moved, .unfinished:
            CommandFailure(.configuration, "\(name): \(error.coded)")
        }
    }
}
