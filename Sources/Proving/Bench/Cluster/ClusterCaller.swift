import NIOCore
import PushModel

/// One of the origin's callers: asks any relay, and asks again with the same bytes, mostly another one, until
/// it is answered. So a repeat comes to a relay that has never seen the first.
struct ClusterCaller {
    private let run: ClusterRun
    private let origin: any LoadOrigin
    private let eventLoop: any EventLoop
    /// One connection at most to each relay.
    private var connections: [Int: CallConnection] = [:]

    init(_ run: ClusterRun, _ origin: any LoadOrigin, _ eventLoop: any EventLoop) {
        self.run = run
        self.origin = origin
        self.eventLoop = eventLoop
    }

    /// Until the load is to end; the last request is carried to its answer.
    mutating func ask() async throws {
        while !run.isEnding {
            try await run.pause(milliseconds: run.random.below(max(1, run.spacingMilliseconds * 2)))
            let devices = (0...run.random.below(run.plan.mostItems)).map { _ in
                origin.devices[run.random.below(origin.devices.count)]
            }
            let request = try origin.notify(devices, contentBytes: 64 + run.random.below(300))
            run.ledger { $0.asked(request.marks, of: RelayPlan.load.name) }
            var bytes = ByteBuffer(bytes: request.head)
            bytes.writeBytes(request.body)
            try await carry(bytes, request.marks)
        }
        for connection in connections.values { connection.close() }
    }

    private mutating func carry(_ request: ByteBuffer, _ marks: [String]) async throws {
        let asked = run.world.now()
        // A request that nobody answers for so long belongs to no load any more.
        let until = run.world.instant() + ClusterPlan.drainSpan
        while run.world.instant() < until {
            guard let relay = run.choose() else {
                try await run.pause(milliseconds: 5)
                continue
            }
            guard let connection = await connected(to: relay) else {
                run.avoid(relay)
                try await run.pause(milliseconds: 5)
                continue
            }
            guard let reply = await connection.ask(request, within: ClusterPlan.answerSpan) else {
                run.ledger { $0.unanswered += 1 }
                connections[relay.number] = nil
                run.avoid(relay)
                continue
            }
            if reply.closes { connections[relay.number] = nil }
            switch reply.status {
            case 200:
                let areAlive = RelayPlan.load.areAlive(String(buffer: reply.body))
                let now = run.world.now()
                return run.ledger {
                    $0.acknowledged(
                        marks, by: relay.number, in: asked...max(asked, now), areAlive: areAlive)
                }
            case 429, 503:
                run.ledger { $0.refusedForNow += 1 }
                run.avoid(relay)
                try await run.pause(milliseconds: 20)
            default:
                return run.ledger { $0.unexpected(reply.status) }
            }
        }
        run.ledger { $0.neverAcknowledged += 1 }
    }

    /// The standing connection, or a new one; `nil` when the relay is down.
    private mutating func connected(to relay: ClusterRun.Target) async -> CallConnection? {
        if let kept = connections[relay.number], kept.remotePort == relay.address.port {
            return kept
        }
        // A relay that was killed a moment ago refuses; the caller goes elsewhere.
        let fresh = try? await CallConnection.connect(
            host: relay.address.host, port: relay.address.port, eventLoop: eventLoop)
        connections[relay.number] = fresh
        return fresh
    }
}
