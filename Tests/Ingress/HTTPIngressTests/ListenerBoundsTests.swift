import HTTPIngress
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#endif

@Suite("Every wait and every buffer has a bound", .timeLimit(.minutes(30)), .serialized)
struct ListenerBoundsTests {
    @Test("A head that comes too slowly is answered 408")
    func slowHead() async throws {
        let limits = patientLimits {
            $0.head = .milliseconds(200)
            // Only heads are bounded here.
            $0.idle = .seconds(1000)
        }
        try await withListener(limits: limits) { _, port in
            let slow = try await RawClient.connect(port)
            try await slow.send("POST /echo HT")
            #expect(try await slow.answer().status == 408)
            #expect(await slow.end() == [])
            let second = try await RawClient.connect(port)
            try await second.send(post("/echo", "x"))
            #expect(try await second.answer().status == 200)
            try await second.send("POS")
            #expect(try await second.answer().status == 408, "the next head is bounded like the first")
            for client in [slow, second] { client.close() }
        }
    }

    @Test("An idle connection is closed without a word, a fresh one and one that was answered")
    func idle() async throws {
        let (clock, load) = (ManualClock(), Signal())
        let limits = patientLimits { $0.idle = .seconds(4) }
        try await withListener(limits: limits, world: clock.world(seed: 1), load: load) { listener, port in
            let fresh = try await RawClient.connect(port)
            let answered = try await RawClient.connect(port)
            try await answered.send(post("/echo", "x"))
            #expect(try await answered.answer().status == 200)
            await load.until { listener.load.connections == 2 }
            try await clock.pass(.milliseconds(3_980))
            #expect(listener.load.connections == 2, "they stand until their deadline")
            try await clock.pass(.milliseconds(20))
            for client in [fresh, answered] { #expect(await client.end() == []) }
            for client in [fresh, answered] { client.close() }
        }
    }

    @Test("A head fed byte by byte cannot outrun its deadline")
    func drippedHead() async throws {
        let limits = patientLimits {
            $0.head = .milliseconds(200)
            // No bound but time ends this head.
            $0.headBytes = 1 << 30
            $0.headFields = 1 << 30
        }
        try await withListener(limits: limits) { _, port in
            let client = try await RawClient.connect(port)
            try await client.send("GET /echo HTTP/1.1\r\n")
            try await withThrowingTaskGroup(of: Void.self) { drip in
                drip.addTask {
                    // The server ends the connection at some point; then sending fails and the drip is over.
                    while (try? await client.send("X: y\r\n")) != nil {}
                }
                #expect(try await client.answer().status == 408)
                client.close()
                try await drip.waitForAll()
            }
        }
    }

    @Test("A body that comes too slowly is answered 408, and one that keeps the rate is not")
    func slowBody() async throws {
        let limits = patientLimits {
            $0.bodyGrace = .milliseconds(300)
            $0.bodyBytesPerSecond = 1000
        }
        let (clock, load) = (ManualClock(), Signal())
        try await withListener(limits: limits, world: clock.world(seed: 1), load: load) { listener, port in
            let slow = try await RawClient.connect(port)
            try await slow.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nab")
            let steady = try await RawClient.connect(port)
            try await steady.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n")
            // 600 bytes earn 600 ms beyond the grace of 300 ms; 2 bytes earn 2.
            try await steady.send(String(repeating: "a", count: 600))
            await load.until { listener.load.bytes == 602 }
            try await clock.pass(.milliseconds(301))
            #expect(listener.load.bytes == 602, "nobody is late yet")
            try await clock.pass(.milliseconds(598))
            #expect(try await slow.answer().status == 408)
            #expect(await slow.end() == [])
            #expect(listener.load.bytes == 600, "what it sent is no longer held")
            try await steady.send(String(repeating: "b", count: 400))
            #expect(try await steady.answer().status == 200)
            slow.close()
            steady.close()
        }
    }

    @Test("However well a body keeps the rate, it is whole within the bound of any body")
    func bodyTotal() async throws {
        let limits = patientLimits {
            $0.bodyGrace = .seconds(10)
            $0.bodyBytesPerSecond = 1
            $0.bodyTotal = .seconds(90)
        }
        let (clock, load) = (ManualClock(), Signal())
        try await withClient(limits: limits, world: clock.world(seed: 1), load: load) { listener, client in
            try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n")
            // Enough for ten minutes at that rate.
            try await client.send(String(repeating: "a", count: 600))
            await load.until { listener.load.bytes == 600 }
            try await clock.pass(.seconds(89))
            #expect(listener.load.bytes == 600)
            try await clock.pass(.seconds(2))
            #expect(try await client.answer().status == 408)
            #expect(listener.load.bytes == 0)
        }
    }

    @Test("Bodies of all connections together stay within one bound: the next sender hears 503")
    func bufferedBytes() async throws {
        // A sixteenth is one client's, so it takes sixteen of them.
        let limits = patientLimits { $0.bufferedBytes = 16 * 1001 }
        let face = ProbeFace("probe", [HTTPRoute(.exact("/echo"), bodyLimitBytes: 4096)])
        let load = Signal()
        try await withListener([face], limits: limits, load: load) { listener, port in
            var held: [RawClient] = []
            for number in 0..<16 {
                let client = try await RawClient.connect(port, from: "127.0.0.\(number + 2)")
                try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\n\r\n")
                try await client.send(String(repeating: "a", count: 1000))
                held.append(client)
            }
            await load.until { listener.load.bytes == 16_000 }
            let late = try await RawClient.connect(port)
            try await late.send(post("/echo", String(repeating: "b", count: 500)))
            let answer = try await late.answer()
            #expect(answer.status == 503)
            for client in held {
                try await client.send("a")
                #expect(try await client.answer().status == 200)
                client.close()
            }
            await load.until { listener.load.bytes == 0 }
            late.close()
        }
    }

    @Test("More requests in flight than allowed: 503 with Retry-After at once, and the connection lives")
    func inFlight() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        let load = Signal()
        try await withListener([face], limits: patientLimits { $0.inFlight = 3 }, load: load) {
            listener, port in
            var clients: [RawClient] = []
            for _ in 0..<3 {
                let client = try await RawClient.connect(port)
                try await client.send(post("/echo", "x"))
                clients.append(client)
            }
            await load.until { listener.load.requests == 3 }
            let late = try await RawClient.connect(port)
            try await late.send(post("/echo", "y"))
            #expect(try await late.answer().status == 503)
            gate.open()
            for client in clients { #expect(try await client.answer().status == 200) }
            try await late.send(post("/echo", "z"))
            #expect(try await late.answer().text == "z")
            for client in clients + [late] { client.close() }
        }
    }

    @Test("A face that does not answer in time: 503, and its late answer goes nowhere")
    func lateFace() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        try await withClient([face], limits: patientLimits { $0.answer = .milliseconds(150) }) { _, client in
            try await client.send(post("/echo", "x"))
            #expect(try await client.answer().status == 503)
            gate.open()
            #expect(await client.end() == [])
        }
    }

    @Test("Who waits for an answer waits from the request's first byte on, and for a while behind its last")
    func answerFromTheFirstByte() async throws {
        let standard = IngressLimits()
        #expect(standard.answer <= .seconds(12) && standard.sweep <= .milliseconds(250))
        let (clock, load, gate) = (ManualClock(), Signal(), Gate())
        let face = ProbeFace { inbound in
            await gate.wait()
            return ProbeFace.echo(inbound)
        }
        let limits = patientLimits { ($0.answer, $0.answerLeast) = (standard.answer, standard.answerLeast) }
        try await withListener([face], limits: limits, world: clock.world(seed: 1), load: load) {
            listener, port in
            /// Sends a body of four bytes in two pieces, so far apart, and waits for its answer.
            func wait(_ apart: Duration, answeredAfter: Duration) async throws {
                let client = try await RawClient.connect(port)
                try await client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab")
                await load.until { listener.load.bytes == 2 }
                try await clock.pass(apart)
                try await client.send("cd")
                await load.until { listener.load.requests == 1 }
                try await clock.pass(answeredAfter - apart - .milliseconds(20))
                #expect(!client.hasHeard && listener.load.bytes == 4, "it waits until then")
                try await clock.pass(.milliseconds(20))
                #expect(try await client.answer().status == 503)
                gate.open()
                await load.until { listener.load.requests == 0 }
                gate.shut()
                client.close()
            }
            try await wait(.seconds(7), answeredAfter: .seconds(12))
            try await wait(.seconds(60), answeredAfter: .seconds(65))
            gate.open()
        }
    }

    @Test("A face is told until when its answer counts")
    func answerBy() async throws {
        let clock = ManualClock()
        let began = clock.instant
        let seen = Noted<ContinuousClock.Instant?>(nil)
        let face = ProbeFace { inbound in
            seen.set(inbound.answerBy)
            return ProbeFace.echo(inbound)
        }
        let limits = patientLimits { $0.answer = .seconds(12) }
        try await withClient([face], limits: limits, world: clock.world(seed: 1)) { _, client in
            try await client.send(post("/echo", "x"))
            #expect(try await client.answer().status == 200)
            #expect(seen.value == began + .seconds(12))
        }
    }

    @Test("Beyond the bound of connections a newcomer hears 503, and has room when one goes")
    func connections() async throws {
        let load = Signal()
        try await withListener(limits: patientLimits { $0.connections = 2 }, load: load) { listener, port in
            let first = try await RawClient.connect(port)
            let second = try await RawClient.connect(port)
            for client in [first, second] {
                try await client.send(post("/echo", "x"))
                #expect(try await client.answer().status == 200)
            }
            let third = try await RawClient.connect(port)
            #expect(try await third.answer().status == 503)
            _ = await third.end()
            third.close()
            first.close()
            await load.until { listener.load.connections == 1 }
            let fourth = try await RawClient.connect(port)
            try await fourth.send(post("/echo", "y"))
            #expect(try await fourth.answer().text == "y")
            second.close()
            fourth.close()
        }
    }

    @Test("Pipelined requests are answered in order, one at a time")
    func pipelining() async throws {
        let running = Mutex((now: 0, most: 0))
        let face = ProbeFace { inbound in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            return ProbeFace.echo(inbound)
        }
        try await withClient([face]) { _, client in
            // Sixty parts: within the bound even if all of them wait behind the first.
            try await client.send((0..<20).map { post("/echo", "\($0)") }.joined())
            for index in 0..<20 { #expect(try await client.answer().text == "\(index)") }
        }
        #expect(running.withLock { $0.most } == 1)
    }

    @Test("Who floods with pipelined requests gets the answers that were due, then the end")
    func pipelineFlood() async throws {
        let gate = Gate()
        let face = ProbeFace.held(by: gate)
        try await withClient([face], limits: patientLimits { $0.waitingParts = 8 }) { _, client in
            try await client.send(String(repeating: get("/echo"), count: 200))
            gate.open()
            #expect(try await client.answer().status == 200)
            var answers = 1
            do {
                while try await client.answer().status == 200 { answers += 1 }
            } catch RawFault.ended {}
            #expect(answers < 200)
        }
    }

    @Test("Ten thousand idle connections stand, and a newcomer is served before any of them must go")
    func idleConnections() async throws {
        let wanted = Self.raiseFileLimit(to: 24_000) >= 22_000 ? 10_000 : 4000
        let load = Signal()
        // Time stands still, so that nobody makes room by being idle for too long.
        try await withListener(world: ManualClock().world(seed: 1), load: load) { listener, port in
            var idle: [RawClient] = []
            for _ in 0..<(wanted / 100) {
                idle += try await withThrowingTaskGroup(of: RawClient.self) { group in
                    for _ in 0..<100 { group.addTask { try await RawClient.connect(port) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            await load.until { listener.load.connections == wanted }
            let newcomer = try await RawClient.connect(port)
            for index in 0..<100 {
                try await newcomer.send(post("/echo", "\(index)"))
                #expect(try await newcomer.answer().text == "\(index)")
            }
            #expect(listener.load.connections == wanted + 1)
            try await idle[wanted / 2].send(post("/echo", "awake"))
            #expect(try await idle[wanted / 2].answer().text == "awake")
            for client in idle + [newcomer] { client.close() }
            await load.until { listener.load.connections == 0 }
        }
    }

    /// The soft limit of open files afterwards: as much of `wanted` as the system allows.
    private static func raiseFileLimit(to wanted: UInt) -> UInt {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        if limit.rlim_cur >= wanted { return UInt(limit.rlim_cur) }
        var raised = rlimit(rlim_cur: rlim_t(wanted), rlim_max: max(rlim_t(wanted), limit.rlim_max))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { return wanted }
        raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
        return setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0
            ? UInt(limit.rlim_max) : UInt(limit.rlim_cur)
    }
}

/// Holds callers until it is opened.
final class Gate: Sendable {
    private let isOpen = Noted(false)

    func wait() async { await isOpen.until(for: "a gate that opens") { $0 } }
    func open() { isOpen.set(true) }
    /// Holds again who comes from now on.
    func shut() { isOpen.set(false) }
}
