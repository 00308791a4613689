public import NIOCore
public import PushModel
import Synchronization

/// A push service that answers 200 to everything and judges nothing: for benchmarks only.
///
/// It counts requests and, unless switched off, `apns-id`s and their doubles.
public final class BareSink: PushSimulator {
    private let counts: SinkCounts
    private let server: SimulatorServer

    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - streams: SETTINGS_MAX_CONCURRENT_STREAMS from the start.
    ///   - rememberedIDs: how many `apns-id`s are remembered to recognise doubles; 0: none.
    ///   - body: of each answer.
    public init(
        host: String = "127.0.0.1", port: Int = 0, streams: UInt32 = 1000, rememberedIDs: Int = 1 << 20,
        body: [UInt8] = [], authority: CertificateAuthority, eventLoopGroup: any EventLoopGroup
    ) {
        var knobs = ConnectionKnobs()
        knobs.streamsAtStart = streams
        knobs.streams = streams
        counts = SinkCounts(rememberedIDs: rememberedIDs, body: body)
        server = SimulatorServer(
            host: host, port: port, knobs: knobs, authority: authority, group: eventLoopGroup)
    }

    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        let counts = counts
        return try await server.start(protocols: ["h2"]) { board in
            SimulatorConnection(judge: SinkJudge(counts), board: board, world: .live)
        }
    }

    public func stop() async { await server.stop() }

    public var port: Int? { server.port }
    /// Number of HTTP/2 connections that are open now.
    public var openConnections: Int { server.board.connections }
    /// Changes how its connections behave.
    public func turnConnections(_ change: (inout ConnectionKnobs) -> Void) { server.board.turn(change) }

    /// `received`, `accepted` (the same here) and `doubles`.
    public var counters: SimulatorCounters {
        var counters = SimulatorCounters()
        counters.received = counts.received.load(ordering: .relaxed)
        counters.accepted = counters.received
        counters.doubles = counts.doubles.load(ordering: .relaxed)
        return counters
    }
}

private final class SinkCounts: Sendable {
    let received = Atomic(0)
    let doubles = Atomic(0)
    let answer: SimulatedAnswer
    private let seen: Mutex<IDSet>?

    init(rememberedIDs: Int, body: [UInt8]) {
        answer = SimulatedAnswer(
            status: 200, contentType: body.isEmpty ? nil : "application/json", body: body, weight: .accepted)
        seen = rememberedIDs > 0 ? Mutex(IDSet(capacity: rememberedIDs)) : nil
    }

    func count(_ id: ArraySlice<UInt8>?) {
        received.wrappingAdd(1, ordering: .relaxed)
        guard let id, seen != nil, let digest = Self.digest(id) else { return }
        if seen?.withLock({ $0.insert(digest) }) == false { doubles.wrappingAdd(1, ordering: .relaxed) }
    }

    /// The 16 bytes of 8-4-4-4-12 hex digits, without making a `String`.
    private static func digest(_ text: ArraySlice<UInt8>) -> Digest16? {
        guard text.count == 36 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        var digits = 0
        for byte in text where byte != UInt8(ascii: "-") {
            let value = UInt64(byte & 0x40 == 0 ? byte & 15 : (byte & 15) + 9)
            if digits < 16 { words.0 = words.0 << 4 | value } else { words.1 = words.1 << 4 | value }
            digits += 1
        }
        return digits == 32 ? Digest16(high: words.0, low: words.1) : nil
    }
}

private final class SinkJudge: ConnectionJudge {
    private let counts: SinkCounts
    init(_ counts: SinkCounts) { self.counts = counts }

    func judge(_ request: SimulatedRequest) -> SimulatedAnswer {
        counts.count(request[.apnsID])
        return counts.answer
    }
}
