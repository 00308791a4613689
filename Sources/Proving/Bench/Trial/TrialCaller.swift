import NIOCore
import PushModel

/// One of an origin's callers: asks any relay, and asks again with the same bytes, mostly another one where
/// there are several, until it is answered. So a repeat comes to a relay that has never seen the first.
struct TrialCaller {
    /// How callers ask.
    struct Manners: Sendable {
        /// Pushes in one request: 1 to this many.
        var mostItems: Int
        /// Before a request, in milliseconds: up to this.
        var mostPause = 0
        /// After which a call is given up, and made again.
        var answerSpan: Duration
        /// After which a request is given up, and the trial has failed.
        var patience: Duration
        /// Whether that counts from the trial's end on; otherwise from the first call on.
        var waitsForTheEnd: Bool
        /// After an answer that refuses for now, in milliseconds.
        var rest: Int
    }

    private struct Line {
        var connection: CallConnection
        var asked = 0
    }

    private let run: TrialRun
    private let load: any LoadProtocol
    private let origin: any LoadOrigin
    private let manners: Manners
    private let eventLoop: any EventLoop
    /// One connection at most to each relay.
    private var lines: [Int: Line] = [:]

    init(
        _ run: TrialRun, _ load: any LoadProtocol, _ origin: any LoadOrigin, _ manners: Manners,
        _ eventLoop: any EventLoop
    ) {
        (self.run, self.load, self.origin, self.manners) = (run, load, origin, manners)
        self.eventLoop = eventLoop
    }

    /// Until the trial is ending; the last request is carried to its answer.
    mutating func ask() async throws {
        while !run.isEnding {
            if manners.mostPause > 0 {
                try await run.pause(milliseconds: run.random.below(manners.mostPause))
            }
            let request = try run.makeRequest(load, origin, mostItems: manners.mostItems)
            try await carry(request.bytes, request.marks)
        }
        for line in lines.values { line.connection.close() }
    }

    private mutating func carry(_ request: ByteBuffer, _ marks: [String]) async throws {
        let asked = run.world.now()
        var until = manners.waitsForTheEnd ? nil : run.world.instant() + manners.patience
        while true {
            if until == nil, run.isEnding { until = run.world.instant() + manners.patience }
            if let until, run.world.instant() >= until { break }
            guard let relay = run.choose() else {
                try await run.pause(milliseconds: 5)
                continue
            }
            guard let line = await line(to: relay) else {
                run.avoid(relay)
                try await run.pause(milliseconds: 5)
                continue
            }
            lines[relay.number]?.asked += 1
            guard let reply = await line.connection.ask(request, within: manners.answerSpan) else {
                run.ledger { $0.unanswered += 1 }
                lines[relay.number] = nil
                run.avoid(relay)
                continue
            }
            if reply.closes { lines[relay.number] = nil }
            let (areAlive, now) = (load.areAlive(String(buffer: reply.body)), run.world.now())
            let note = TrialLedger.Answered(
                port: line.connection.localPort, sequence: line.asked, status: reply.status, marks: marks)
            run.ledger { $0.note(note) }
            switch reply.status {
            case 200:
                return run.ledger {
                    $0.acknowledged(
                        marks, by: relay.number, in: asked...max(asked, now), areAlive: areAlive)
                }
            case 429, 503:
                run.ledger { $0.refusedForNow += 1 }
                run.avoid(relay)
                try await run.pause(milliseconds: manners.rest)
            default: return run.ledger { $0.unexpected(reply.status) }
            }
        }
        run.ledger { $0.neverAcknowledged += 1 }
    }

    /// The standing connection, or a new one; `nil` when the relay is down.
    private mutating func line(to relay: TrialRun.Target) async -> Line? {
        if let kept = lines[relay.number], kept.connection.remotePort == relay.address.port { return kept }
        // A relay that was killed a moment ago refuses; the caller goes elsewhere, or comes back.
        let fresh = try? await CallConnection.connect(
            host: relay.address.host, port: relay.address.port, eventLoop: eventLoop)
        lines[relay.number] = fresh.map { Line(connection: $0) }
        return lines[relay.number]
    }
}
