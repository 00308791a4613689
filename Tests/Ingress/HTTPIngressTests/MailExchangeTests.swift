import NIOCore
import NIOPosix
import PushTesting
import Testing
import WebClient

/// What name servers may say of a mail domain, and how long it is waited for.
@Suite("Mail exchangers", .timeLimit(.minutes(30)))
struct MailExchangeTests {
    /// Answers each question as `answer` makes it; `nil`: not at all.
    private final class NameServer: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>
        private let answer: @Sendable ([UInt8]) -> [UInt8]?

        init(_ answer: @escaping @Sendable ([UInt8]) -> [UInt8]?) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let asked = unwrapInboundIn(data)
            guard let bytes = answer(Array(asked.data.readableBytesView)) else { return }
            let told = AddressedEnvelope(remoteAddress: asked.remoteAddress, data: ByteBuffer(bytes: bytes))
            context.writeAndFlush(wrapOutboundOut(told), promise: nil)
        }
    }

    private func with<Result: Sendable>(
        _ answer: @escaping @Sendable ([UInt8]) -> [UInt8]?, _ body: (UInt16) async throws -> Result
    ) async throws -> Result {
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NameServer(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        defer { channel.close(promise: nil) }
        return try await body(UInt16(channel.localAddress?.port ?? 0))
    }

    /// An answer to a question: the same id and question, a code, and records that refer to the question's
    /// name by a pointer.
    private static func answer(
        _ question: [UInt8], code: UInt8 = 0, _ records: [(type: UInt8, data: [UInt8])] = []
    )
        -> [UInt8]
    {
        // Up to the question's end; what resolvers put behind it is left out.
        var end = 12
        while question[end] != 0 { end += Int(question[end]) + 1 }
        let head: [UInt8] = [
            question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0
        ]
        var bytes = head + question[12..<(end + 5)]
        for record in records {
            bytes += [0xC0, 12, 0, record.type, 0, 1, 0, 0, 0, 60, 0, UInt8(record.data.count)] + record.data
        }
        return bytes
    }

    /// Waits as long as a test may take: the name server beside it may not be scheduled for a minute.
    private static func patient(_ port: UInt16) -> MailExchangeResolver {
        MailExchangeResolver(port: port, secondsForEach: 600, deadline: .seconds(600))
    }

    private static let exchanger: [UInt8] = [0, 10, 2, 0x6D, 0x78, 0xC0, 12]

    @Test("An exchanger is one; none, no domain, and the one that means none are none")
    func answers() async throws {
        let rows: [(@Sendable ([UInt8]) -> [UInt8]?, MailExchange)] = [
            ({ Self.answer($0, [(15, Self.exchanger)]) }, .present),
            // Behind the name that the domain is an alias of.
            ({ Self.answer($0, [(5, [1, 0x61, 0]), (15, Self.exchanger)]) }, .present),
            ({ Self.answer($0, [(15, [0, 0, 0])]) }, .absent),
            ({ Self.answer($0, [(5, [1, 0x61, 0])]) }, .absent),
            ({ Self.answer($0) }, .absent), ({ Self.answer($0, code: 3) }, .absent),
            ({ Self.answer($0, code: 2) }, .unknown), ({ Self.answer($0, code: 5) }, .unknown)
        ]
        for (index, (say, expected)) in rows.enumerated() {
            let found = try await with(say) { port in
                await Self.patient(port).exchange(of: "mail.example")
            }
            #expect(found == expected, "row \(index)")
        }
    }

    @Test("The question is for the domain alone, as it was given, and for mail exchangers")
    func question() async throws {
        let asked = Noted<[UInt8]>([])
        _ = try await with({ question in
            asked.set(question)
            return Self.answer(question)
        }) { port in
            await Self.patient(port).exchange(of: "mail.example")
        }
        let name = [4] + Array("mail".utf8) + [7] + Array("example".utf8) + [0]
        #expect(asked.value.dropFirst(12).starts(with: name + [0, 15, 0, 1]))
    }

    @Test("A name server that says nothing is waited for no longer than the bound, however many ask")
    func silence() async throws {
        try await with({ _ in nil }) { port in
            let resolver = MailExchangeResolver(port: port, secondsForEach: 1, deadline: .milliseconds(50))
            await withTaskGroup(of: MailExchange.self) { group in
                for _ in 0..<40 { group.addTask { await resolver.exchange(of: "mail.example") } }
                for await found in group { #expect(found == .unknown) }
            }
        }
    }

    @Test("One of two name servers that is silent, or refuses, hides no answer of the other")
    func twoServers() async throws {
        let good: @Sendable ([UInt8]) -> [UInt8]? = { Self.answer($0, [(15, Self.exchanger)]) }
        try await with(good) { port in
            for silent in [{ @Sendable (_: [UInt8]) in nil }, { Self.answer($0, code: 5) }]
                as [@Sendable ([UInt8]) -> [UInt8]?]
            {
                try await with(silent) { dead in
                    for (first, second) in [(dead, port), (port, dead)] {
                        let resolver = MailExchangeResolver(
                            port: second, before: first, secondsForEach: 1, deadline: .seconds(600))
                        // A good one that is not scheduled for a second has another try.
                        var said: [MailExchange] = []
                        try await asked(for: "the good one's answer") {
                            said.append(await resolver.exchange(of: "mail.example"))
                            return said.last == .present
                        }
                        #expect(!said.contains(.absent), "nobody has said that there is none")
                    }
                }
            }
        }
    }

    @Test("An answer that is cut at any length, or is none, is read to its end and names nobody")
    func cut() {
        let question: [UInt8] = [7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 15, 0, 1]
        let whole = Self.answer(question, [(15, Self.exchanger)])
        #expect(MailExchangeResolver.hasExchange(whole[...]))
        for length in 0..<whole.count { #expect(!MailExchangeResolver.hasExchange(whole[..<length])) }
        for byte in [UInt8(0x40), 0x80, 0xBF, 0xC0, 0xFF, 0] {
            #expect(!MailExchangeResolver.hasExchange([UInt8](repeating: byte, count: 600)[...]))
        }
    }
}
