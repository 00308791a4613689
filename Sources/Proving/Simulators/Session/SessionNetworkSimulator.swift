import Primitives
package import PushModel
import ServiceLifecycle
package import SessionPush
import Synchronization

/// Storage servers and a chain daemon on this machine, over ZeroMQ with CURVE. They judge watches as the real
/// ones do, and are as unreliable as a test wants.
///
/// ```swift
/// let network = SessionNetworkSimulator(.init(), world: .live)
/// try await network.start()
/// let daemon = network.daemonEndpoint  // tcp://127.0.0.1:…
/// ```
package final class SessionNetworkSimulator: Service {
    private let configuration: SessionNetworkConfiguration
    let world: World
    let thread: SessionNetworkThread?
    private let readers = NoteReaders<SessionNote>(ahead: 65_536)
    private let endpoint = Mutex<String?>(nil)

    package init(_ configuration: SessionNetworkConfiguration = .init(), world: World) {
        self.configuration = configuration
        self.world = world
        thread = SessionNetworkThread(configuration, world: world)
    }

    /// Binds all ports and serves.
    ///
    /// - Throws: `.portNotFree`, `.alreadyStarted`.
    package func start() async throws(SimulatorError) {
        guard endpoint.withLock({ $0 == nil }), let thread else { throw SimulatorError(.alreadyStarted) }
        guard let made = await thread.start(note: { [readers] in readers.tell($0) }) else {
            throw SimulatorError(.portNotFree)
        }
        endpoint.withLock { $0 = made }
    }

    /// Starts, unless it is already started, and serves until graceful shutdown.
    package func run() async throws {
        if endpoint.withLock({ $0 == nil }) { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    /// Closes all ports, and ends all notes.
    package func stop() async {
        await thread?.stop()
        readers.finish()
    }

    /// The chain daemon's address, without encryption; `nil` before ``start()``.
    package var daemonEndpoint: String? { endpoint.withLock(\.self) }

    // MARK: What a test turns and reads

    package func turn(_ node: Int, _ change: @escaping @Sendable (inout StorageNodeKnobs) -> Void) {
        thread?.tell { $0.turn(node, change) }
    }

    package func turnDaemon(_ change: @escaping @Sendable (inout ChainDaemonKnobs) -> Void) {
        thread?.tell { $0.turnDaemon(change) }
    }

    /// Stores a message: each member of the account's swarm reports it to everyone who watches.
    package func store(_ notice: StorageNotice) { thread?.tell { $0.store(notice) } }

    /// Stops a storage server and starts it again at the same place; it has lost its watches.
    package func restart(_ node: Int) { thread?.tell { $0.restart(node) } }

    /// A storage server loses its watches and keeps its connections, as when their time is over.
    package func forget(_ node: Int) { thread?.tell { $0.forget(node) } }

    /// Drops only connections: watches stay, as when a network fails for a moment.
    package func cut(_ node: Int) { thread?.tell { $0.cut(node) } }

    /// Sends something to everyone who is connected to a storage server.
    package func say(_ node: Int, _ frames: [[UInt8]], times: Int = 1) {
        thread?.tell { $0.say(node, frames, times: times) }
    }

    /// A new block: from now on the network has these nodes and swarms.
    ///
    /// - Parameter swarms: the swarm of each node, by its number; `nil`: it is not in the list.
    package func block(swarms: [UInt64?]) { thread?.tell { $0.block(swarms) } }

    /// The valid watches of all clients of a storage server.
    package func watches(at node: Int) async -> Int {
        await withCheckedContinuation { continuation in
            guard let thread else { return continuation.resume(returning: 0) }
            thread.tell { continuation.resume(returning: $0.watches(at: node)) }
        }
    }

    /// The accounts with valid watches of all clients of a storage server, as bytes.
    package func watchedAccounts(at node: Int) async -> Set<[UInt8]> {
        await withCheckedContinuation { continuation in
            guard let thread else { return continuation.resume(returning: []) }
            thread.tell { continuation.resume(returning: $0.watchedAccounts(at: node)) }
        }
    }

    /// Notes from now on.
    package func notes() -> AsyncStream<SessionNote> { readers.stream() }
}

extension StorageNotice {
    /// A message that somebody writes to an account: of now, and kept for two weeks.
    ///
    /// Storage servers make the hash of account, namespace and message alone, so equal messages in one place
    /// are one message, whenever they are written. Apps encrypt what they write, so theirs are never equal.
    ///
    /// - Parameter hash: 32 to 99 bytes of text, as of a server that makes hashes in another way; `nil`: as
    ///   storage servers make it.
    package static func written(
        _ data: Secret, to account: AccountID, namespace: Int16 = 0, hash: String? = nil, _ world: World
    ) -> StorageNotice {
        let now = world.now()
        let hash = hash ?? storageHash(of: data, to: account, namespace)
        return StorageNotice(
            account: account, hash: Secret(hash.utf8), namespace: namespace, timestamp: now,
            expiry: now + .seconds(14 * 86_400), data: data)
    }

    /// BLAKE2b-256 of account, namespace in decimal (nothing for 0) and message, in base64 without `=`.
    private static func storageHash(of data: Secret, to account: AccountID, _ namespace: Int16) -> String {
        let hash = Blake2b.digest32 { hash in
            hash.update(account.bytes)
            if namespace != 0 { hash.update(Array(String(namespace).utf8)) }
            hash.update(data)
        }
        return String(SimulatorBase64.encode(hash.reveal { Array($0) }).prefix(43))
    }
}
