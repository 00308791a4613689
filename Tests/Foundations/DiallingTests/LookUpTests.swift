import Dialling
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

/// Name servers that answer half of what they are asked.
@Suite("Look-ups of two families", .timeLimit(.minutes(30)))
struct LookUpTests {
    /// Answers with one address to questions of one kind, and to no others.
    private final class HalfServer: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>
        /// 1: A, 28: AAAA (RFC 1035 §3.2.2, RFC 3596 §2.1).
        private let type: UInt8
        private let address: [UInt8]

        init(type: UInt8, address: [UInt8]) { (self.type, self.address) = (type, address) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let asked = unwrapInboundIn(data)
            let question = Array(asked.data.readableBytesView)
            var end = 12
            while end < question.count, question[end] != 0 { end += Int(question[end]) + 1 }
            guard end + 4 < question.count, question[end + 2] == type else { return }
            var answer: [UInt8] = [question[0], question[1], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
            answer += question[12..<(end + 5)]
            answer += [0xC0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, UInt8(address.count)] + address
            let told = AddressedEnvelope(remoteAddress: asked.remoteAddress, data: ByteBuffer(bytes: answer))
            context.writeAndFlush(wrapOutboundOut(told), promise: nil)
        }
    }

    private static let four: [UInt8] = [192, 0, 2, 7]
    private static let six: [UInt8] = [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]

    @Test(
        "A name server that never answers for one family hides no address of the other",
        arguments: [(UInt8(1), four, "192.0.2.7"), (28, six, "2001:db8:0:0:0:0:0:7")])
    func half(_ type: UInt8, _ address: [UInt8], _ text: String) async throws {
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(HalfServer(type: type, address: address))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = UInt16(channel.localAddress?.port ?? 0)
        // The look-up of both would take a minute, and then say that there is no such name, or half of it.
        let resolver = SystemResolver(threads: 3, waiting: 3, patience: .milliseconds(10)) {
            SystemResolver.lookUpBriefly($0, $1, port: port, seconds: 60)
        }
        #expect(try await resolver.resolve("push.test").map(\.text) == [text])
        try await channel.close().get()
    }

    @Test("An answer in time is the system's own, in its order, and nobody is asked twice")
    func inTime() async throws {
        let asked = Noted<[SystemResolver.Family]>([])
        let both = ["2001:db8:0:0:0:0:0:1", "192.0.2.1"]
        let resolver = SystemResolver(threads: 3, waiting: 3, patience: .seconds(600)) { _, family in
            asked.change { $0.append(family) }
            return both.compactMap { IPAddress($0) }
        }
        #expect(try await resolver.resolve("push.test").map(\.text) == both)
        #expect(asked.value == [.both])
    }

    @Test("That one family has no address is no answer; that both have none is")
    func none() async throws {
        let isOpen = Noted(false)
        let resolver = SystemResolver(threads: 3, waiting: 3, patience: .milliseconds(1)) { _, family in
            guard family == .both else { return [] }
            // Blocks its thread, which is the resolver's own.
            while !isOpen.value { sched_yield() }
            return []
        }
        let lookUp = LookUp("push.test") { found in if found.isEmpty { isOpen.set(true) } }
        resolver.begin(lookUp)
        try await asked(for: "two questions that were answered") { resolver.load == (0, 1) }
        #expect(!lookUp.isOver)
        isOpen.set(true)
        try await asked(for: "an answer") { lookUp.isOver }
    }
}
