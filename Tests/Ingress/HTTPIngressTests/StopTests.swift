import CoreMetrics
import HTTPIngress
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import ServiceLifecycle
import Synchronization
import Testing

/// Sees whether a connection failed.
private final class Failure: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let seen = Mutex(false)
    var wasSeen: Bool { seen.withLock { $0 } }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        seen.withLock { $0 = true }
        context.fireErrorCaught(error)
    }
}

@Suite("A listener stops without dropping what it was asked", .timeLimit(.minutes(30)))
struct StopTests {
    @Test(
        "At a graceful stop idle connections end, requests in flight are answered, newcomers are turned away")
    func graceful() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        let load = Signal()
        let limits = patientLimits { $0.lastChance = .milliseconds(50) }
        let (listener, group, port) = try await stopped([face], limits: limits, load: load)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let idle = try await RawClient.connect(port)
            let busy = try await RawClient.connect(port)
            let reading = try await RawClient.connect(port)
            try await busy.send(post("/echo", "busy"))
            try await reading.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nre")
            await load.until { listener.load == (connections: 3, requests: 1, bytes: 6) }
            await group.triggerGracefulShutdown()
            #expect(await idle.end() == [], "quiet, it is ended when its last chance has passed")
            await #expect(throws: (any Error).self) {
                let late = try await RawClient.connect(port)
                try await late.send(get("/echo"))
                _ = try await late.answer()
            }
            // In two reads: a stopping listener goes on reading what has begun.
            try await reading.send("s")
            await load.until { listener.load.bytes == 7 }
            try await reading.send("t")
            gate.open()
            for (client, text) in [(busy, "busy"), (reading, "rest")] {
                let answer = try await client.answer()
                #expect(answer.text == text)
                #expect(answer.header("connection") == "close")
                #expect(await client.end() == [])
                client.close()
            }
            idle.close()
            try await tasks.waitForAll()
        }
        #expect(listener.load.connections == 0)
    }

    @Test("A stop is bounded: who never finishes a request is cut at the end of the drain")
    func boundedDrain() async throws {
        let (clock, load) = (ManualClock(), Signal())
        let (listener, group, port) = try await stopped(
            [ProbeFace()], limits: patientLimits { $0.drain = .seconds(5) }, world: clock.world(seed: 1),
            load: load)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let idle = try await RawClient.connect(port)
            let client = try await RawClient.connect(port)
            try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab")
            await load.until { listener.load.bytes == 2 && listener.load.connections == 2 }
            await group.triggerGracefulShutdown()
            try await drains(listener)
            try await clock.pass(.milliseconds(2_000))
            #expect(await idle.end() == [])
            idle.close()
            // A sweep before the end of the drain leaves it alone: what it sends is still read.
            try await clock.pass(.milliseconds(2_999))
            try await client.send("c")
            await load.until { listener.load.bytes == 3 }
            #expect(listener.load.bytes == 3)
            try await clock.pass(.milliseconds(20))
            #expect(await client.end() == [])
            try await tasks.waitForAll()
            client.close()
        }
        #expect(listener.load.connections == 0 && listener.load.bytes == 0)
    }

    @Test("A kept connection has one more answer at a stop, and so has one that has asked nothing yet")
    func oneMoreAnswer() async throws {
        let (clock, load) = (ManualClock(), Signal())
        let (listener, group, port) = try await stopped(
            [ProbeFace()], limits: patientLimits(), world: clock.world(seed: 2), load: load)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let (kept, fresh) = (try await RawClient.connect(port), try await RawClient.connect(port))
            try await kept.send(post("/echo", "first"))
            #expect(try await kept.answer().header("connection") == nil)
            await load.until { listener.load.connections == 2 }
            await group.triggerGracefulShutdown()
            try await drains(listener)
            try await clock.pass(.milliseconds(1_900))
            for client in [kept, fresh] {
                try await client.send(post("/echo", "last"))
                let answer = try await client.answer()
                #expect(answer.text == "last")
                #expect(answer.header("connection") == "close")
                #expect(await client.end() == [])
                client.close()
            }
            try await tasks.waitForAll()
        }
        #expect(listener.load.connections == 0)
    }

    @Test("Requests that were read are answered at a stop, in order; the last answer says that it is")
    func pipelined() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        let load = Signal()
        let (listener, group, port) = try await stopped([face], load: load)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let client = try await RawClient.connect(port)
            try await client.send(post("/echo", "one") + post("/echo", "two"))
            await load.until { listener.load.requests == 1 }
            await group.triggerGracefulShutdown()
            try await drains(listener)
            gate.open()
            let answers = [try await client.answer(), try await client.answer()]
            #expect(answers.map(\.text) == ["one", "two"])
            #expect(answers.map { $0.header("connection") } == [nil, "close"])
            #expect(await client.end() == [])
            client.close()
            try await tasks.waitForAll()
        }
    }

    @Test("What a client sends behind its last answer does not reset the connection before it has read it")
    func noReset() async throws {
        let load = Signal()
        let (listener, group, port) = try await stopped([ProbeFace()], load: load)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let client = try await RawClient.connect(port)
            let failure = Failure()
            try await client.channel.pipeline.addHandler(failure, position: .first).get()
            try await client.send(post("/echo", "x", "Connection: close\r\n"))
            #expect(try await client.answer().text == "x")
            #expect(await client.end() == [])
            // A socket that was closed whole would answer this with a reset.
            try await client.send(post("/echo", "crossing"))
            #expect(listener.load.connections == 1, "it is read on until the client ends it")
            client.close()
            await load.until { listener.load.connections == 0 }
            #expect(!failure.wasSeen)
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test("Cancellation cuts everything at once")
    func cancellation() async throws {
        let (listener, _, port) = try await stopped([ProbeFace()])
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await listener.run() }
            let client = try await RawClient.connect(port)
            try await client.send(post("/echo", "x"))
            #expect(try await client.answer().status == 200)
            tasks.cancelAll()
            _ = await client.end()
            client.close()
        }
        #expect(listener.load.requests == 0)
    }

    @Test("A taken address is a typed error with the listener's name")
    func addressTaken() async throws {
        try await withListener { _, port in
            let second = try HTTPListener(
                configured("second"), at: .init(host: "127.0.0.1", port: port), router: HTTPRouter([]),
                group: MultiThreadedEventLoopGroup.singleton, world: .live, journal: .silent,
                metrics: NOOPMetricsHandler.instance)
            await #expect {
                _ = try await second.open()
            } throws: { error in
                (error as? IngressError)?.code == .bindFailed
                    && (error as? IngressError)?.names == [configured("second")]
            }
        }
    }

    /// Waits until every connection knows of the stop.
    private func drains(_ listener: HTTPListener) async throws {
        try await asked(for: "a listener that stops") { listener.isDraining }
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
    }

    private func stopped(
        _ faces: [any HTTPFace], limits: IngressLimits = patientLimits(), world: World = .live,
        load: Signal = Signal()
    ) async throws -> (HTTPListener, ServiceGroup, Int) {
        let listener = try HTTPListener(
            configured("public"), at: .init(host: "127.0.0.1", port: 0), router: HTTPRouter(faces),
            limits: limits,
            group: MultiThreadedEventLoopGroup.singleton, world: world, journal: .silent,
            metrics: NOOPMetricsHandler.instance, loadChanged: { load.changed() })
        let port = try await listener.open()
        return (
            listener, ServiceGroup(services: [listener], gracefulShutdownSignals: [], logger: silentLogger),
            port
        )
    }
}
