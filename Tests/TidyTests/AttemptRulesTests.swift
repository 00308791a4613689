import Testing

@Suite("What belongs to one attempt at an address", .timeLimit(.minutes(30)))
struct AttemptRulesTests {
    @Test("Sockets are opened by the dialer, and no attempt shares anything with another")
    func sources() throws {
        let files = try Tree.sources()
        #expect(files.contains { $0.path.hasPrefix(AttemptRules.home) }, "the dialer was not found")
        #expect(files.flatMap(AttemptRules.handlerTypes).count > 15, "the handlers were not found")
        let found = AttemptRules.all(files)
        #expect(found.isEmpty, "\(found.map(\.description).joined(separator: "\n"))")
    }

    private static let handlers = """
        final class Connection: ChannelInboundHandler, @unchecked Sendable {
            typealias InboundIn = ByteBuffer
        }
        private final class Waiter<A>: ChannelDuplexHandler {}
        """

    private func found(_ text: String, at path: String = "Sources/Services/HTTP2Client/A.swift") -> [String] {
        let files = [("Sources/x/Handlers.swift", Self.handlers), (path, text)].map {
            SwiftText(path: $0.0, text: $0.1)
        }
        return AttemptRules.all(files).map(\.text).filter { $0 != "a socket past the dialer" }
    }

    @Test("A handler that every address's channel is given is found")
    func handler() {
        let text = """
            func dial(_ connection: Connection) -> EventLoopFuture<Void> {
                ClientBootstrap(group: loop)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture { try self.secure(channel, connection) }
                    }
                    .connect(host: host, port: port)
            }
            func made() {
                let waiter = Waiter<Int>()
                _ = bootstrap.channelInitializer { $0.pipeline.addHandler(waiter) }
            }
            """
        #expect(found(text) == ["connection is every attempt's", "waiter is every attempt's"])
    }

    @Test("A promise that every address may keep is found")
    func promise() {
        let text = """
            func dial(on loop: any EventLoop, _ told: EventLoopPromise<Int>) {
                let established = loop.makePromise(of: Void.self)
                let bootstrap = ClientBootstrap(group: loop)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try self.addConnect(to: channel, proxy, established)
                        }
                    }
                dialer.dial(host, port) { (channel, attempt: DialAttempt<Void>) in
                    told.succeed(1)
                }
            }
            """
        #expect(found(text) == ["established is every attempt's", "told is every attempt's"])
    }

    @Test("What an initializer changes outside of its channel is found")
    func changes() {
        let text = """
            func connect() {
                let box = Box()
                bootstrap.channelInitializer { channel in
                    let caller = Caller()
                    box.caller = caller
                    self.callers.append(caller)
                    self.alive += 1
                    return channel.pipeline.addHandler(caller)
                }
            }
            """
        #expect(found(text) == ["it changes box", "it changes self"])
        #expect(found(text, at: "Sources/Proving/Bench/A.swift").count == 2)
        #expect(found(text, at: "Sources/Foundations/Dialling/A.swift").isEmpty)
    }

    @Test("What is made for each channel is its own, and a server's children may share")
    func own() {
        let text = """
            func prepare(_ box: Waiter<Int>) {
                dialer.dial(host, port, prepare: { channel, attempt in
                    let answer = channel.eventLoop.makePromise(of: Int.self)
                    var handlers = [Waiter(answer, attempt)]
                    handlers[0].size = 1
                    guard let tls, tls.version == 3 else { return }
                    try channel.pipeline.syncOperations.addHandlers(handlers)
                }, done: { box.tell($0) })
                server.childChannelInitializer { channel in box.add(channel) }
            }
            """
        #expect(found(text).isEmpty)
    }

    @Test("A socket past the dialer is found, but for load drivers")
    func bootstraps() {
        let text = "let made = ClientBootstrap(group: loop)\nother.connect(host: name, port: 1)\n"
        let count = { AttemptRules.bootstraps(SwiftText(path: $0, text: text)).count }
        #expect(count("Sources/Relay/RelayProgram/A.swift") == 2)
        #expect(count("Sources/Proving/Bench/A.swift") == 0)
    }
}
