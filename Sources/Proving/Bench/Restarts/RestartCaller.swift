import NIOCore
import PushModel

/// One of the origin's callers. As a server with a message, it asks once: what is not answered is gone.
struct RestartCaller {
    let trial: RestartTrial
    let origin: any LoadOrigin
    let eventLoop: any EventLoop
    let keeps: Bool
    /// The longest span between two calls, in milliseconds.
    let pause: Int
    private var connection: CallConnection?

    init(_ trial: RestartTrial, _ origin: any LoadOrigin, _ eventLoop: any EventLoop, keeps: Bool, pause: Int)
    {
        self.trial = trial
        self.origin = origin
        self.eventLoop = eventLoop
        self.keeps = keeps
        self.pause = pause
    }

    mutating func run() async throws {
        while !trial.shared.isEnding {
            let request = try trial.shared.makeRequest(
                RelayPlan.load, origin, mostItems: RestartPlan.mostItems)
            let (began, turn) = (trial.shared.world.instant(), trial.note { $0.turn })
            let end = await call(request.bytes)
            if end == .taken { trial.shared.ledger { $0.acknowledged(request.marks) } }
            let span = trial.shared.world.instant() - began
            trial.note { $0.called(end, in: span, across: $0.turn != turn) }
            try await trial.shared.pause(milliseconds: trial.shared.random.below(max(1, pause)))
        }
        connection?.close()
    }

    private mutating func call(_ request: ByteBuffer) async -> RestartLedger.End {
        if let kept = connection, await kept.standing().hasEnded {
            trial.note { $0.endedQuietly += 1 }
            connection = nil
        }
        guard let connection = await standing() else { return .refused }
        self.connection = keeps ? connection : nil
        guard let reply = await connection.ask(request, within: RestartPlan.patience) else {
            self.connection = nil
            return await connection.standing().wasReset ? .reset : .unanswered
        }
        if reply.closes {
            self.connection = nil
            if keeps { trial.note { $0.endedWithAnswer += 1 } }
        }
        if !keeps { connection.close() }
        return reply.status == 200 ? .taken : .otherStatus
    }

    /// The kept connection, or a new one; `nil` where there is none.
    private func standing() async -> CallConnection? {
        guard connection == nil, let address = trial.shared.address else { return connection }
        // Who gets none was refused, and that is counted.
        return try? await CallConnection.connect(
            host: address.host, port: address.port, eventLoop: eventLoop)
    }
}
