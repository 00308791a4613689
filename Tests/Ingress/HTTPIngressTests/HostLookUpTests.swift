import Dialling
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Synchronization
import Testing
import WebClient

/// Who waits for whom when name servers are slow.
@Suite("Look-ups of hosts", .timeLimit(.minutes(30)))
struct HostLookUpTests {
    /// Look-ups that take until the test says so; the system's block their threads just as well.
    private final class SlowNames: Sendable {
        private struct State {
            var waiting: [String] = []
            var isOpen = false
        }
        private let state = Mutex(State())
        private let looked = Noted<[String]>([])

        /// Hosts whose look-ups have begun, in order.
        var begun: Noted<[String]> { looked }
        func open() { state.withLock { $0.isOpen = true } }

        /// Blocks its thread, which is the resolver's own.
        func lookUp(_ host: String) -> [IPAddress] {
            looked.change { $0.append(host) }
            while !state.withLock(\.isOpen) { sched_yield() }
            return IPAddress("192.0.2.1").map { [$0] } ?? []
        }
    }

    private static func isFound(_ resolver: SystemResolver, _ host: String) async -> Bool {
        do throws(WebError) { return try await !resolver.resolve(host).isEmpty } catch { return false }
    }

    @Test("A look-up whose caller leaves before it has a thread never begins, and gives its place away")
    func cancelled() async throws {
        let names = SlowNames()
        let resolver = SystemResolver(threads: 1, waiting: 2) { names.lookUp($0) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { await Self.isFound(resolver, "slow") }
            await names.begun.until { $0 == ["slow"] }
            let leaving = Task { await Self.isFound(resolver, "left") }
            try await asked(for: "one that waits") { resolver.load.waiting == 1 }
            leaving.cancel()
            #expect(await leaving.value == false)
            #expect(resolver.load.waiting == 0)
            for host in ["next", "last"] {
                group.addTask { await Self.isFound(resolver, host) }
            }
            try await asked(for: "two that wait") { resolver.load.waiting == 2 }
            #expect(await Self.isFound(resolver, "too many") == false)
            names.open()
            for try await found in group where !found { Issue.record("each of the three is found") }
        }
        #expect(names.begun.value.sorted() == ["last", "next", "slow"])
        // The answer is there a moment before its thread is free.
        try await asked(for: "a free thread") { resolver.load == (0, 0) }
    }

    @Test("Hosts of peers' choice that are slow to be found keep nobody else's look-up waiting")
    func apart() async throws {
        let names = SlowNames()
        let peers = SystemResolver(threads: 2, waiting: 2) { names.lookUp($0) }
        let own = SystemResolver(threads: 2, waiting: 2) { _ in IPAddress("192.0.2.2").map { [$0] } ?? [] }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<4 { group.addTask { await Self.isFound(peers, "peer\(number)") } }
            try await asked(for: "two look-ups and two that wait") { peers.load == (2, 2) }
            #expect(await Self.isFound(own, "oauth2.example.org"))
            names.open()
        }
    }

    /// A name server on this machine.
    private static func nameServer(
        _ handler: some ChannelHandler & Sendable
    ) async throws -> (channel: any Channel, port: UInt16) {
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return (channel, UInt16(channel.localAddress?.port ?? 0))
    }

    /// Counts questions and answers none.
    private final class Silent: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        let asked = Noted(0)
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { asked.change { $0 += 1 } }
    }

    @Test("A name server that does not answer about a peer's host is asked once for each kind of address")
    func silentServer() async throws {
        let silent = Silent()
        let (channel, port) = try await Self.nameServer(silent)
        let resolver = SystemResolver(threads: 1, waiting: 1) { SystemResolver.lookUpBriefly($0, port: port) }
        // The system's own resolver asks twice, and again for each domain of its search list. Where it leaves
        // name servers to another service, nobody is asked here.
        #expect(await Self.isFound(resolver, "peer.example") == false)
        #expect(silent.asked.value <= 2)
        try await channel.close().get()
    }

    private static func fault(_ resolver: SystemResolver, _ host: String) async -> WebErrorCode? {
        do throws(WebError) {
            _ = try await resolver.resolve(host)
            return nil
        } catch { return error.code }
    }

    @Test("That there is no such name is told from that nobody knows")
    func unknown() async throws {
        let knowing = SystemResolver(threads: 1, waiting: 1) { $0 == "none" ? nil : [] }
        #expect(await Self.fault(knowing, "none") == .unknownHost)
        #expect(await Self.fault(knowing, "silent") == .unreachable)
        // For one family alone it says nothing of the other.
        let address = try #require(IPAddress("192.0.2.1"))
        let isOpen = Noted(false)
        let halves = SystemResolver(threads: 3, waiting: 3, patience: .milliseconds(1)) { _, family in
            switch family {
            case .both:
                // Blocks its thread, which is the resolver's own.
                while !isOpen.value { sched_yield() }
                return nil
            case .v6: return nil
            case .v4: return [address]
            }
        }
        #expect(try await halves.resolve("half") == [address])
        isOpen.set(true)
    }

    /// Answers that there is no such name, and counts the questions.
    private final class Denying: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>
        let asked = Noted(0)
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var envelope = unwrapInboundIn(data)
            asked.change { $0 += 1 }
            // RFC 1035 §4.1.1: a response, recursion desired and available, NXDOMAIN; the question as it is.
            envelope.data.setInteger(UInt16(0x8183), at: envelope.data.readerIndex + 2)
            // No records: what the question added, such as EDNS, is left out.
            envelope.data.setInteger(UInt16(0), at: envelope.data.readerIndex + 10)
            context.writeAndFlush(wrapOutboundOut(envelope), promise: nil)
        }
    }

    @Test("A name server's word that there is no such name is heard")
    func denied() async throws {
        let denying = Denying()
        let (channel, port) = try await Self.nameServer(denying)
        let resolver = SystemResolver(threads: 1, waiting: 1) { SystemResolver.lookUpBriefly($0, port: port) }
        let fault = await Self.fault(resolver, "peer.example")
        // Where the system leaves name servers to another service, nobody is asked here.
        if denying.asked.value > 0 { #expect(fault == .unknownHost) }
        try await channel.close().get()
    }

    @Test("The system's resolver knows localhost, and says so when a name has no address")
    func system() async throws {
        for isBrief in [false, true] {
            let resolver = SystemResolver(threads: 1, waiting: 1) {
                isBrief ? SystemResolver.lookUpBriefly($0) : SystemResolver.lookUp($0)
            }
            let found = try await resolver.resolve("localhost")
            #expect(found.allSatisfy(\.isLoopback) && !found.isEmpty)
            #expect(await Self.isFound(resolver, "no-such-host.invalid") == false)
        }
    }
}
