import HTTPIngress
import PushModel
import PushTesting
import Testing

/// Three strangers may fill a listener with bodies that they never end.
@Suite("Bodies that stand still make way", .timeLimit(.minutes(30)))
struct StandingBodyTests {
    private static let length = 1 << 20
    private let face = ProbeFace("probe", [HTTPRoute(.exact("/echo"), bodyLimitBytes: 2 << 20)]) { _ in
        .text(200, "taken")
    }
    /// A quarter each is small bodies' and a client's; so three clients fill the room of large ones.
    private let limits = patientLimits { $0.bufferedBytes = 4 << 20 }

    private func begin(
        _ port: Int, from place: String, _ fields: String = "", short bytes: Int = 1
    ) async throws -> RawClient {
        let client = try await RawClient.connect(port, from: place)
        try await client.send(
            "POST /echo HTTP/1.1\r\nHost: t\r\n\(fields)Content-Length: \(Self.length)\r\n\r\n"
                + String(repeating: "a", count: Self.length - bytes))
        return client
    }

    @Test("When room is wanted the oldest of them are cut, and not before they have stood for two seconds")
    func stalled() async throws {
        let (clock, load) = (ManualClock(), Signal())
        try await withListener([face], limits: limits, world: clock.world(seed: 1), load: load) {
            listener, port in
            var standing: [RawClient] = []
            for number in 0..<3 {
                standing.append(try await begin(port, from: "127.0.0.\(number + 2)"))
                await load.until { listener.load.bytes == (number + 1) * (Self.length - 1) }
            }
            let early = try await begin(port, from: "127.0.0.9", short: 0)
            #expect(try await early.answer().status == 503, "they may go on in a moment")
            try await clock.pass(.seconds(2))
            #expect(listener.load.bytes == 3 * (Self.length - 1), "nobody wants the room")
            let honest = try await begin(port, from: "127.0.0.9", short: 0)
            #expect(try await honest.answer().status == 200)
            #expect(try await standing[0].answer().status == 408)
            await load.until { listener.load.bytes == 2 * (Self.length - 1) }
            try await standing[1].send("a")
            #expect(try await standing[1].answer().status == 200, "one that goes on is served")
            for client in standing + [early, honest] { client.close() }
            await load.until { listener.load.bytes == 0 }
        }
    }

    @Test("A sender whose credential was good lately keeps its room")
    func proven() async throws {
        let (clock, load) = (ManualClock(), Signal())
        try await withListener([face], limits: limits, world: clock.world(seed: 1), load: load) {
            listener, port in
            let known = "Authorization: good\r\n"
            let before = try await RawClient.connect(port, from: "127.0.0.2")
            try await before.send(post("/echo", "x", known))
            #expect(try await before.answer().status == 200)
            var standing: [RawClient] = []
            for number in 0..<3 {
                standing.append(
                    try await begin(port, from: "127.0.0.\(number + 2)", number == 0 ? known : ""))
                await load.until { listener.load.bytes == (number + 1) * (Self.length - 1) }
            }
            try await clock.pass(.seconds(2))
            let honest = try await begin(port, from: "127.0.0.9", short: 0)
            #expect(try await honest.answer().status == 200)
            #expect(try await standing[1].answer().status == 408)
            try await standing[0].send("a")
            #expect(try await standing[0].answer().status == 200)
            for client in standing + [before, honest] { client.close() }
        }
    }
}
