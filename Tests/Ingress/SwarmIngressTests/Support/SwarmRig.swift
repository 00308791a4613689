import CoreMetrics
import Delivery
import DeliveryTesting
import EdwardsKeys
import Primitives
import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Synchronization
import Testing
import WireFormats

/// An account of a test, and what it signs.
struct SwarmAccount: Sendable {
    let pair: Ed25519KeyPair
    let id: AccountID

    /// - Parameter swarm: in whose part of the ring it is to stand.
    init(in map: SwarmMap? = nil, swarm: UInt64? = nil) throws {
        var generator = SystemRandomNumberGenerator()
        while true {
            let pair = Ed25519KeyPair.generate(using: &generator)
            let key = try #require(EdwardsPoint.x25519(of: pair.publicKey))
            let id = try #require(AccountID(Secret([0x05] + key.reveal { Array($0) })))
            guard swarm == nil || map?.swarm(of: id.swarmPoint) == swarm else { continue }
            (self.pair, self.id) = (pair, id)
            return
        }
    }

    var hex: String { id.bytes.reveal { Hex.encode($0) } }

    /// A watch as the device signs it.
    func watch(
        _ namespaces: [Int16] = [0], data: Bool = true, at seconds: Int64 = World.live.now().seconds
    ) -> MonitorRequest {
        let list = namespaces.map(String.init).joined(separator: ",")
        let text = Array("MONITOR\(hex)\(seconds)\(data ? 1 : 0)\(list)".utf8)
        return MonitorRequest(
            account: id, ed25519: pair.publicKey.bytes, delegation: nil, wantsData: data,
            namespaces: namespaces, signature: text.withUnsafeBytes { pair.signature(over: $0) },
            sigTimestamp: seconds)
    }

    /// A message in the account's swarm.
    func message(_ number: Int = 0, namespace: Int16 = 0, bytes: Int = 40) -> StorageNotice {
        let digits = String(number)
        let hash = String(repeating: "h", count: 43 - digits.count) + digits
        return StorageNotice(
            account: id, hash: Secret(hash.utf8), namespace: namespace,
            timestamp: UnixTime(seconds: 1_700_000_000), expiry: UnixTime(seconds: 1_701_000_000),
            data: Secret([UInt8](repeating: 7, count: bytes)))
    }
}

/// A simulated network, a registry, and what a link to them needs.
final class SwarmRig: Sendable {
    let network: SessionNetworkSimulator
    let seen: AsyncStream<SessionNote>
    let taken: AsyncStream<StorageNotice>
    /// What the link notes, in order.
    let notes: AsyncStream<String>
    let bell = Bell()
    let registry: any Registry
    let space: Space
    let name: ConfiguredName
    private let inlet: AsyncStream<StorageNotice>.Continuation
    private let journal: Journal
    private let book = Mutex<[UInt64: MonitorRequest]>([:])

    init(_ configuration: SessionNetworkConfiguration = SessionNetworkConfiguration()) async throws {
        network = SessionNetworkSimulator(configuration, world: .live)
        try await network.start()
        seen = network.notes()
        (taken, inlet) = AsyncStream.makeStream()
        (journal, notes) = Journal.notes()
        registry = try await SealedMemory(.live).store
        name = try #require(ConfiguredName("session-main"))
        space = Space(name, "sub")
    }

    /// Spans short enough for a test, none that a loaded machine would trip over.
    static var limits: SwarmLimits {
        var limits = SwarmLimits()
        limits.tick = .milliseconds(20)
        limits.dialDeadline = .seconds(600)
        limits.replyDeadline = .seconds(600)
        limits.heartbeatTimeout = .seconds(600)
        limits.ladder = [.milliseconds(50), .milliseconds(100)]
        limits.daemonLadder = limits.ladder
        limits.eagerRedial = .milliseconds(50)
        limits.lookEvery = .milliseconds(50)
        limits.strikeRest = .milliseconds(50)
        limits.nodesPause = .milliseconds(20)
        limits.doubtRest = .seconds(600)
        limits.takeAgain = .milliseconds(20)
        limits.storeRest = .milliseconds(50)
        return limits
    }

    /// A new account whose watch is registered.
    func account() async throws -> SwarmAccount {
        let account = try SwarmAccount()
        try await register([account.watch()])
        return account
    }

    /// Registers watches, and rings the bell.
    func register(_ watches: [MonitorRequest]) async throws {
        let changes = watches.map { watch in
            let number = book.withLock { book in
                let number = UInt64(book.count)
                book[number] = watch
                return number
            }
            let bytes = withUnsafeBytes(of: number) { Array($0) }
            return Change.put(
                Record(
                    key: RecordKey(space, Secret(bytes)), touchedAt: World.live.now(), body: Secret(bytes)),
                if: .any)
        }
        #expect(try await registry.apply(changes) == .committed)
        bell.ring()
    }

    /// How many of them stand.
    func rows() async throws -> Int { try await registry.page(.space(space), after: 0, limit: 100).count }

    /// What a row of this test says is to be watched.
    func parse(_ record: Record) -> MonitorRequest? {
        let number = record.body.reveal { $0.loadUnaligned(as: UInt64.self) }
        return book.withLock { $0[number] }
    }

    func ingress(
        _ limits: SwarmLimits = SwarmRig.limits, pair: X25519KeyPair = .generate(.live),
        membership: Membership? = nil, bell own: Bell? = nil, daemon: String? = nil,
        metrics: any MetricsFactory = NOOPMetricsHandler.instance, take: SwarmIngress.Take? = nil
    ) throws -> SwarmIngress {
        let endpoint = try #require(daemon ?? network.daemonEndpoint)
        let settings = SwarmSettings(
            daemon: try #require(DaemonAddress(endpoint)), pair: pair, space: space)
        return SwarmIngress(
            name: name, settings: settings, registry: registry, bell: own ?? bell, membership: membership,
            limits: limits, world: .live, journal: journal, metrics: metrics, parse: { self.parse($0) },
            take: take ?? { self.inlet.took($0) })
    }

    /// Runs the link while `body` does, then stops it and the network.
    func run(_ ingresses: SwarmIngress..., body: () async throws -> Void) async throws {
        try await beside(
            {
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    for ingress in ingresses { tasks.addTask { try await ingress.run() } }
                    try await tasks.waitForAll()
                }
            }, stop: { for ingress in ingresses { ingress.stop() } }, clean: network.stop, body)
    }

    /// Waits until so many watches were taken by each of these nodes.
    func shown(
        _ count: Int, at nodes: [Int], file: String = #fileID, line: Int = #line
    ) async throws {
        var left = Dictionary(uniqueKeysWithValues: nodes.map { ($0, count) })
        while left.values.contains(where: { $0 > 0 }) {
            let note = try await seen.next("watches at \(left)", file: file, line: line) { $0.isWatched }
            if case .watched(let node, let taken, _) = note, let open = left[node] {
                left[node] = open - taken
            }
        }
    }

    /// The next messages that were told.
    func told(_ count: Int, file: String = #fileID, line: Int = #line) async throws -> [StorageNotice] {
        var pushes: [StorageNotice] = []
        while pushes.count < count {
            pushes.append(
                try await taken.next("message \(pushes.count + 1) of \(count)", file: file, line: line))
        }
        return pushes
    }
}

extension AsyncStream<StorageNotice>.Continuation {
    /// Tells the test of a message.
    func took(_ notice: StorageNotice) -> SwarmIngress.Taken {
        yield(notice)
        return .taken
    }
}

extension SessionNote {
    var isWatched: Bool { if case .watched = self { true } else { false } }
}

extension StorageNotice {
    var hashText: String { hash.reveal { String(decoding: $0, as: UTF8.self) } }
}
