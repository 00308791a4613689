import NIOCore
import PushModel

/// The attackers: what they do with connections and calls, whatever these say.
struct SiegeForce: Sendable {
    let scene: SiegeScene
    let end: ContinuousClock.Instant

    var trial: SiegeTrial { scene.trial }
    /// Not before somebody who behaves well was answered or given up: on a machine that has much to do, all
    /// of the span may pass without a call.
    var isOver: Bool {
        let now = trial.world.instant()
        return now >= end && (now >= end + SiegePlan.patience || trial.note { $0.answered + $0.failed > 0 })
    }
    private var rest: Duration { max(.milliseconds(1), end - trial.world.instant()) }

    /// The first address of strangers; the origin and those who come by have others.
    static let stranger = "127.0.1.1"

    // MARK: Bodies

    /// Each begins its body, again whenever the relay has ended it.
    func send(_ bodies: [ByteBuffer]) async {
        await withTaskGroup(of: Void.self) { senders in
            for body in bodies {
                senders.addTask {
                    while !isOver {
                        guard let connection = await scene.connect(from: Self.stranger, to: scene.port) else {
                            await breathe()
                            continue
                        }
                        let reply = await connection.ask(body, within: rest)
                        connection.close()
                        if !isOver { trial.note { $0.attacker(heard: reply?.status) } }
                        await breathe()
                    }
                }
            }
        }
    }

    // MARK: Connections

    /// Takes connections that say nothing, and holds them to the end.
    func hold(_ place: (Int) -> String) async throws {
        var held: [CallConnection] = []
        for number in 0..<SiegePlan.crowd where !isOver {
            if let connection = await scene.connect(from: place(number), to: scene.port) {
                held.append(connection)
            }
        }
        try await trial.world.sleep(end)
        while !isOver { await breathe() }
        for connection in held {
            // Who was turned away was told so, and has ended.
            let hasEnded = await connection.standing().hasEnded
            trial.note { $0.attacker(heard: hasEnded ? 429 : 0) }
            connection.close()
        }
    }

    // MARK: Calls

    func repeatedly(callers: Int, _ request: @escaping @Sendable (Int) -> ByteBuffer) async {
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var number = caller
                    await repeatedly(from: Self.stranger) {
                        defer { number += callers }
                        return request(number)
                    }
                }
            }
        }
    }

    /// Asks as fast as it is answered, until the end or until there is nothing more to ask.
    func repeatedly(from place: String, _ request: () throws -> ByteBuffer?) async rethrows {
        var kept: CallConnection?
        defer { kept?.close() }
        while !isOver, let bytes = try request() {
            if kept == nil { kept = await scene.connect(from: place, to: scene.port) }
            let reply = await kept?.ask(bytes, within: SiegePlan.patience)
            trial.note { $0.attacker(heard: reply?.status) }
            if reply == nil || reply?.closes == true {
                kept?.close()
                kept = nil
            }
        }
    }

    func breathe() async {
        // Ends early only when the trial is cancelled.
        try? await trial.world.sleep(trial.world.instant() + .milliseconds(20))
    }
}
