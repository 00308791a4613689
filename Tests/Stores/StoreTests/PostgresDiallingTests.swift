import DialTesting
import Dialling
import NIOCore
import NIOPosix
import PostgresStore
import PushModel
import PushTesting
import Testing

/// A database server whose name has two addresses, of which one is dead.
@Suite("A PostgreSQL server of two addresses", .timeLimit(.minutes(30)))
struct PostgresDiallingTests {
    static let orders = DeadAddress.Kind.allCases.flatMap { kind in [(kind, true), (kind, false)] }

    /// The tests' shared server, by a name that only the test's resolver knows.
    private func place() async throws -> (url: String, port: Int) {
        let cluster = try await PostgresCluster.shared
        let url = cluster.url.replacing("127.0.0.1", with: "database.test")
        return (url.replacing("localhost", with: "database.test"), cluster.port)
    }

    @Test("It is reached by the good one, whichever comes first", arguments: orders)
    func direct(_ kind: DeadAddress.Kind, _ isDeadFirst: Bool) async throws {
        let (url, port) = try await place()
        let dead = try DeadAddress(kind, port: port)
        let options = DialOptions.swift(isDeadFirst ? [dead.address, .here] : [.here, dead.address])
        let found = try await PostgresInspection.look(
            at: try PostgresAddress(url), within: .seconds(30), dialling: options)
        #expect(found.isWritable)
        #expect((options.resolver as? NamedAddresses)?.asked == ["database.test"])
    }

    /// Takes connections, counts them, and ends each at once.
    private final class Ender: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        private let count: Noted<Int>
        init(_ count: Noted<Int>) { self.count = count }
        func channelActive(context: ChannelHandlerContext) {
            count.change { $0 += 1 }
            context.close(promise: nil)
        }
    }

    @Test("A useless address is tried once, and no more when another has worked")
    func preferred() async throws {
        let (url, port) = try await place()
        let count = Noted(0)
        let useless = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Ender(count))
                }
            }
            .bind(host: "127.0.0.9", port: port).get()
        var limits = PostgresLimits()
        limits.connections = 3
        // Nothing but a failure makes the next address begin: each has minutes.
        let store = try await PostgresStore(
            try PostgresAddress(url + "?connect_timeout=600"), owner: OwnerID(Digest16(high: 12, low: 1)),
            limits: limits, world: ManualClock().world(seed: 1), isGuest: true,
            dialling: .patient([IPAddress(v4: 0x7F00_0009), .here]))
        await store.close()
        #expect(count.value == 1)
        try await useless.close()
    }

    @Test("A host none of whose addresses answers makes room for the next host")
    func nextHost() async throws {
        let (url, port) = try await place()
        let kinds: [DeadAddress.Kind] = [.refusing, .unroutable]
        let dead = try kinds.map { try DeadAddress($0, port: port).address }
        let hosts = url.replacing("database.test:\(port)", with: "127.0.0.77:\(port),database.test:\(port)")
        #expect(hosts != url)
        let found = try await PostgresInspection.look(
            at: try PostgresAddress(hosts), within: .seconds(30), dialling: .swift(dead + [.here]))
        #expect(found.isWritable)
        await #expect(throws: StoreError(.unavailable)) {
            _ = try await PostgresInspection.look(
                at: try PostgresAddress(url), within: .seconds(30), dialling: .swift(dead))
        }
    }

    @Test("A name that has no address, and one that nobody answers for, are unavailable")
    func unresolved() async throws {
        let (url, _) = try await place()
        await #expect(throws: StoreError(.unavailable)) {
            _ = try await PostgresInspection.look(
                at: try PostgresAddress(url), within: .seconds(30), dialling: .swift([]))
        }
    }
}
