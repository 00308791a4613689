import HTTPIngress
import PushModel
import PushTesting
import Testing

@Suite("No client takes what is everybody's", .timeLimit(.minutes(30)))
struct ShareTests {
    @Test("One client takes its share of the connections, and others are served")
    func connections() async throws {
        let load = Signal()
        let limits = patientLimits {
            $0.connections = 8
            $0.clientConnections = 2
        }
        try await withListener(limits: limits, load: load) { listener, port in
            var greedy: [RawClient] = []
            for number in 0..<8 {
                let client = try await RawClient.connect(port, from: "127.0.0.2")
                greedy.append(client)
                if number >= 2 {
                    #expect(try await client.answer().status == 429)
                } else {
                    // Two loops accept: what connects next may be counted first.
                    await load.until { listener.load.connections == number + 1 }
                }
            }
            let other = try await RawClient.connect(port)
            try await other.send(post("/echo", "x"))
            #expect(try await other.answer().status == 200)
            await load.until { listener.load.connections == 3 }
            greedy[0].close()
            await load.until { listener.load.connections == 2 }
            let again = try await RawClient.connect(port, from: "127.0.0.2")
            try await again.send(post("/echo", "y"))
            #expect(try await again.answer().status == 200, "what it gives back it may have again")
            for client in greedy + [other, again] { client.close() }
        }
    }

    @Test("A trusted proxy carries everybody, so its connections are nobody's share")
    func proxy() async throws {
        let limits = patientLimits { $0.clientConnections = 2 }
        let proxies = try TrustedProxies(["127.0.0.2"], of: configured("public"))
        try await withListener(limits: limits, proxies: proxies) { _, port in
            var clients: [RawClient] = []
            for _ in 0..<5 {
                let client = try await RawClient.connect(port, from: "127.0.0.2")
                try await client.send(post("/echo", "x"))
                #expect(try await client.answer().status == 200)
                clients.append(client)
            }
            for client in clients { client.close() }
        }
    }

    @Test("Who fails again and again is told to wait, before its call is looked at; others are not")
    func failures() async throws {
        let face = ProbeFace("probe", [HTTPRoute(.exact("/echo"), bodyLimitBytes: 1024)]) { inbound in
            HTTPOutbound(inbound.header("authorization")?.hasPrefix("good") == true ? 200 : 401)
        }
        let clock = ManualClock()
        try await withListener([face], limits: patientLimits(), world: clock.world(seed: 1)) { _, port in
            func ask(_ credential: String, from place: String) async throws -> Int {
                let client = try await RawClient.connect(port, from: place)
                defer { client.close() }
                try await client.send(get("/echo", "Authorization: \(credential)\r\n"))
                return try await client.answer().status
            }
            let stranger = try await RawClient.connect(port, from: "127.0.0.2")
            for number in 0..<IngressLimits.failedPerMinute {
                try await stranger.send(get("/echo", "Authorization: bad\(number)\r\n"))
                #expect(try await stranger.answer().status == 401)
                // An origin that stands behind the same address, and shows what it is.
                if number == 300 { #expect(try await ask("good", from: "127.0.0.2") == 200) }
            }
            try await stranger.send(get("/echo", "Authorization: bad\r\n"))
            let refused = try await stranger.answer()
            #expect(refused.status == 429 && refused.header("connection") == "close")
            #expect(try await ask("good", from: "127.0.0.2") == 200)
            #expect(try await ask("good too, and never seen", from: "127.0.0.2") == 429)
            #expect(try await ask("bad", from: "127.0.0.3") == 401)
            // A hundred milliseconds earn one more.
            clock.advance(by: .milliseconds(100))
            #expect(try await ask("bad", from: "127.0.0.2") == 401)
            #expect(try await ask("bad", from: "127.0.0.2") == 429)
            stranger.close()
        }
    }

    @Test(
        "Whatever field a face's credential stands in, one that was good lately is looked at beside wrong ones",
        arguments: ["authorization", "x-key"])
    func goodBesideWrong(_ field: String) async throws {
        var face = ProbeFace("probe", [HTTPRoute(.exact("/echo"), bodyLimitBytes: 1024)]) { inbound in
            HTTPOutbound(inbound.header(field) == "good" ? 200 : 401)
        }
        face.credentialField = field
        let clock = ManualClock()
        try await withListener([face], limits: patientLimits(), world: clock.world(seed: 1)) { _, port in
            func ask(_ credential: String, _ client: RawClient) async throws -> Int {
                try await client.send(get("/echo", "\(field): \(credential)\r\n"))
                return try await client.answer().status
            }
            // A minute before anybody fails.
            let early = try await RawClient.connect(port, from: "127.0.0.2")
            #expect(try await ask("good", early) == 200)
            clock.advance(by: .seconds(60))
            let client = try await RawClient.connect(port, from: "127.0.0.2")
            for number in 0..<IngressLimits.failedPerMinute {
                #expect(try await ask("wrong \(number)", client) == 401)
            }
            for _ in 0..<2 { #expect(try await ask("good", client) == 200) }
            #expect(try await ask("wrong", client) == 429)
            for client in [early, client] { client.close() }
        }
    }

    @Test("A body that the head has decided against is read past, or costs the connection, and holds nothing")
    func judgedByTheHead() async throws {
        let face = JudgingFace()
        try await withListener([face]) { listener, port in
            let client = try await RawClient.connect(port)
            for _ in 0..<2 {
                try await client.send(post("/large", String(repeating: "a", count: 60_000)))
                let answer = try await client.answer()
                #expect(answer.status == 401 && answer.header("connection") == nil)
            }
            try await client.send(post("/large", "x", "Authorization: good\r\n"))
            #expect(try await client.answer().text == "x")
            // Nobody is told to go on for a body that nobody wants.
            try await client.send(
                "POST /large HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            let expecting = try await client.answer()
            #expect(expecting.status == 401 && expecting.header("connection") == "close")
            for framing in ["Content-Length: 500000", "Transfer-Encoding: chunked"] {
                let long = try await RawClient.connect(port)
                try await long.send("POST /large HTTP/1.1\r\nHost: t\r\n\(framing)\r\n\r\n")
                let answer = try await long.answer()
                #expect(answer.status == 401 && answer.header("connection") == "close", "before the body")
                long.close()
            }
            #expect(listener.load.bytes == 0)
            client.close()
        }
    }

    @Test("A body that the head has decided against is bounded in time like any other")
    func judgedAndSlow() async throws {
        let (clock, load) = (ManualClock(), Signal())
        let limits = patientLimits {
            $0.bodyGrace = .seconds(10)
            $0.idle = .seconds(600)
        }
        let world = clock.world(seed: 1)
        try await withClient([JudgingFace()], limits: limits, world: world, load: load) { listener, client in
            await load.until { listener.load.connections == 1 }
            try await client.send("POST /large HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n")
            var hasHeard = false
            // The head may be on its way yet when time passes.
            for _ in 0..<500 where !hasHeard {
                try await clock.pass(.seconds(1))
                hasHeard = client.hasHeard
            }
            #expect(try await client.answer().status == 408)
        }
    }

    /// Wants a credential before it takes a body.
    private struct JudgingFace: HTTPFace {
        let name = configured("judging")
        let routes = [HTTPRoute(.exact("/large"), bodyLimitBytes: 1 << 20)]
        func respond(to inbound: HTTPInbound) async -> HTTPOutbound { ProbeFace.echo(inbound) }
        func judge(head: HTTPInbound) -> HTTPOutbound? {
            head.header("authorization") == nil ? .text(401, "who?") : nil
        }
    }

    @Test("What strains a listener is told when it begins, and when it has been over for a while")
    func strain() async throws {
        let (clock, load) = (ManualClock(), Signal())
        let told = Noted<[Set<ListenerStrain>]>([])
        var limits = patientLimits()
        limits.connections = 1
        limits.strainLasts = .seconds(60)
        try await withListener(
            limits: limits, world: clock.world(seed: 1), load: load,
            strained: { strains in told.change { $0.append(strains) } }
        ) { listener, port in
            let first = try await RawClient.connect(port)
            await load.until { listener.load.connections == 1 }
            let second = try await RawClient.connect(port)
            #expect(try await second.answer().status == 503)
            try await clock.pass(.milliseconds(20))
            await told.until { $0 == [[.connections]] }
            try await clock.pass(.seconds(59))
            #expect(told.value == [[.connections]])
            try await clock.pass(.seconds(2))
            await told.until { $0 == [[.connections], []] }
            for client in [first, second] { client.close() }
        }
    }

    /// What a walk through the shares holds, counted by hand.
    private struct Holding {
        let client: ClientKey
        var received = 0
    }

    @Test(
        "Whatever comes and goes in whatever order, nothing is counted twice or left behind",
        arguments: UInt64(0)..<20)
    func walk(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var limits = IngressLimits()
        limits.connections = 12
        limits.clientConnections = 5
        limits.bufferedBytes = 2 << 20
        var shares = Shares(limits)
        var connected: [ClientKey?] = []
        var bodies: [Holding] = []
        for _ in 0..<2_000 {
            let client = ClientKey(UInt64.random(in: 0..<4, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                let holder = Bool.random(using: &random) ? client : nil
                // Who is turned away is counted out too, of all connections alone.
                connected.append(shares.connect(holder) == .granted ? holder : nil)
            case 1 where !connected.isEmpty:
                shares.disconnect(connected.remove(at: Int.random(in: 0..<connected.count, using: &random)))
            case 2: bodies.append(Holding(client: client))
            case 3 where !bodies.isEmpty:
                let body = bodies.remove(at: Int.random(in: 0..<bodies.count, using: &random))
                shares.release(body.received, of: body.client)
            default:
                guard !bodies.isEmpty else { continue }
                let index = Int.random(in: 0..<bodies.count, using: &random)
                let count = Int.random(in: 1...100_000, using: &random)
                let body = bodies[index]
                if shares.take(count, behind: body.received, of: body.client) == .granted {
                    bodies[index].received += count
                }
            }
            #expect(shares.bytes == bodies.reduce(0) { $0 + $1.received })
            #expect(shares.bytes <= limits.bufferedBytes)
        }
        for body in bodies { shares.release(body.received, of: body.client) }
        for client in connected { shares.disconnect(client) }
        #expect(shares.bytes == 0 && shares.connections == 0 && shares.clients == 0)
    }
}
