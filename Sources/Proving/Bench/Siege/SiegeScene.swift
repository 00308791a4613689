import NIOCore
import NIOPosix
import PushModel
import Simulators
import WireFormats

/// A relay under siege, and everybody at its listeners.
struct SiegeScene: Sendable {
    let trial: SiegeTrial
    let address: RelayProcess.Address
    let admin: Int
    let origin: any LoadOrigin
    let stage: RelayProcess
    let service: ChaosService

    private var world: World { trial.world }
    var port: Int { address.port }

    /// One attack: its makers, the origin or others in its place, and those who come by, until the span is
    /// over.
    ///
    /// - Parameter number: of the attack among all.
    func endure(_ attack: SiegeAttack, _ number: Int) async throws {
        let sides = try await attack.prepare(self)
        // As an origin's, they stand before anybody comes to take all there are.
        var kept: [CallConnection?] = []
        if sides.others == nil {
            for _ in 0..<trial.plan.callers { kept.append(await connect(from: nil, to: port)) }
        }
        let began = world.instant()
        let end = began + .nanoseconds(Int64(trial.plan.seconds * 1e9))
        let before = usage()
        let arrivals = SiegeArrivals(service, of: Set(origin.devices.map(\.token)), world: world)
        let force = SiegeForce(scene: self, end: end)
        try await withThrowingTaskGroup(of: Void.self) { parties in
            parties.addTask { try await sides.attackers(force) }
            if let others = sides.others { parties.addTask { try await others(force) } }
            for connection in kept { parties.addTask { try await self.ask(on: connection, until: end) } }
            parties.addTask { try await self.comeBy(attack, number, until: end) }
            try await parties.waitForAll()
        }
        // Whoever slows others' pushes lets their calls be answered: what they asked for must arrive as well.
        if sides.others == nil { try await waitForAll(trial.note { $0.answered }, arrivals) }
        guard let before, let after = usage() else { return }
        let cores = (after - before).inSeconds / max(0.001, (world.instant() - began).inSeconds)
        trial.note { $0.cores = cores }
    }

    /// Notes what of so many pushes has not arrived soon after the attack.
    func waitForAll(_ count: Int, _ arrivals: SiegeArrivals) async throws {
        _ = try await arrivals.wait(within: SiegePlan.arrival) { $0.count >= count }
        let missing = max(0, count - arrivals.count)
        trial.note { $0.undelivered = missing }
    }

    /// CPU time of the relay so far.
    private func usage() -> Duration? { ProcessUsage.of(address.pid)?.cpu }

    // MARK: Those who behave well

    /// An origin's caller: one call after the other on a connection that it keeps, and one at least. It asks
    /// once.
    private func ask(on connection: CallConnection?, until end: ContinuousClock.Instant) async throws {
        var kept = connection
        defer { kept?.close() }
        repeat {
            let device = origin.devices[Int(world.random() % UInt64(origin.devices.count))]
            let request = try origin.notify([device], contentBytes: 100)
            let bytes = ByteBuffer((request.head, request.body))
            let began = world.instant()
            if kept == nil { kept = await connect(from: nil, to: port) }
            let reply = await kept?.ask(bytes, within: SiegePlan.patience)
            if reply == nil || reply?.closes == true { kept = nil }
            let span = world.instant() - began
            trial.note { $0.called(reply?.status, in: span) }
            try await world.sleep(world.instant() + SiegePlan.pause)
        } while world.instant() < end
    }

    /// In the middle of the attack: a server signs up, and an operator looks whether the relay lives.
    private func comeBy(
        _ attack: SiegeAttack, _ number: Int, until end: ContinuousClock.Instant
    ) async throws {
        let half = (end - world.instant()) / 2
        try await world.sleep(world.instant() + half)
        let newcomer = stage.makeOrigin(at: address)
        let signUp = await once(newcomer.signUp()[0][0], from: "127.0.9.\(number + 1)", to: port)
        let health = ByteBuffer(string: "GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        let live = await once(health, from: nil, to: admin)
        trial.note { ledger in
            // A crowd large enough takes every place at the public listener; what stands there is served.
            ledger.isCrowded = attack.takesEveryPlace
            ledger.hasSignedUp = signUp == 200
            ledger.hasAdmin = live == 200
        }
    }

    // MARK: Connections

    /// - Parameter place: an address of 127.0.0.0/8; `nil`: the origin's own.
    func connect(from place: String?, to port: Int) async -> CallConnection? {
        // Who gets no connection has heard nothing.
        try? await CallConnection.connect(
            host: "127.0.0.1", port: port, from: place, eventLoop: trial.group.next())
    }

    func once(_ request: ByteBuffer, from place: String?, to port: Int) async -> Int? {
        guard let connection = await connect(from: place, to: port) else { return nil }
        defer { connection.close() }
        return await connection.ask(request, within: SiegePlan.patience)?.status
    }
}
