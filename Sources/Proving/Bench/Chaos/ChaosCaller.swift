import NIOCore
import PushModel

/// One of the origin's callers: asks, and asks again with the same bytes until it is answered.
struct ChaosCaller {
    private let trial: ChaosTrial
    private let load: any LoadProtocol
    private let origin: any LoadOrigin
    private let eventLoop: any EventLoop
    private var connection: CallConnection?
    private var asked = 0

    init(
        _ trial: ChaosTrial, _ load: any LoadProtocol, _ origin: any LoadOrigin, _ eventLoop: any EventLoop
    ) {
        self.trial = trial
        self.load = load
        self.origin = origin
        self.eventLoop = eventLoop
    }

    /// Until the trial is ending; the last request is carried to its answer.
    mutating func run() async throws {
        while !trial.shared.isEnding {
            let devices = (0...trial.random.below(trial.plan.mostItems)).map { _ in
                origin.devices[trial.random.below(origin.devices.count)]
            }
            let request = try origin.notify(devices, contentBytes: 64 + trial.random.below(300))
            trial.shared.ledger { $0.asked(request.marks, of: load.name) }
            var bytes = ByteBuffer(bytes: request.head)
            bytes.writeBytes(request.body)
            try await carry(bytes, request.marks)
        }
        connection?.close()
    }

    private mutating func carry(_ request: ByteBuffer, _ marks: [String]) async throws {
        var last: ContinuousClock.Instant?
        while true {
            if trial.shared.isEnding {
                let now = trial.world.instant()
                let until = last ?? now + ChaosPlan.lastAnswerSpan
                last = until
                guard now < until else { return trial.shared.ledger { $0.neverAcknowledged += 1 } }
            }
            guard let connection = try await connected() else { continue }
            let sequence = asked
            asked += 1
            guard let reply = await connection.ask(request, within: ChaosPlan.answerSpan) else {
                trial.shared.ledger { $0.unanswered += 1 }
                self.connection = nil
                continue
            }
            let port = connection.localPort
            if reply.closes { self.connection = nil }
            trial.shared.ledger {
                $0.note(.init(port: port, sequence: sequence, status: reply.status, marks: marks))
            }
            switch reply.status {
            case 200:
                let text = String(buffer: reply.body)
                let areAlive = load.areAlive(text)
                return trial.shared.ledger { $0.acknowledged(marks, areAlive: areAlive) }
            case 429, 503:
                trial.shared.ledger { $0.refusedForNow += 1 }
                try await trial.pause(milliseconds: 50)
            default:
                return trial.shared.ledger { $0.unexpected(reply.status) }
            }
        }
    }

    /// The standing connection, or a new one; `nil` after a short wait when the relay is down.
    private mutating func connected() async throws -> CallConnection? {
        if let connection { return connection }
        guard let address = trial.shared.address,
            // A relay that was killed a moment ago refuses; the caller comes back.
            let fresh = try? await CallConnection.connect(
                host: address.host, port: address.port, eventLoop: eventLoop)
        else {
            try await trial.pause(milliseconds: 5)
            return nil
        }
        connection = fresh
        asked = 0
        return fresh
    }
}
