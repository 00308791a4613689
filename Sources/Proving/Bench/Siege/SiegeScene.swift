import NIOCore
import NIOPosix
import PushModel
import Simulators
import WireFormats

/// A relay under siege, and everybody at its listeners.
struct SiegeScene: Sendable {
    let trial: SiegeTrial
    let address: RelayStage.Address
    let admin: Int
    let origin: any LoadOrigin
    let stage: RelayStage
    let service: ChaosService

    private var world: World { trial.world }
    var port: Int { address.port }

    /// One attack: its makers, the origin and those who come by, until the span is over.
    func endure(_ attack: SiegeAttack) async throws {
        // As an origin's, they stand before anybody comes to take all there are.
        var kept: [CallConnection?] = []
        for _ in 0..<trial.plan.callers { kept.append(await connect(from: nil, to: port)) }
        let began = world.instant()
        let end = began + .nanoseconds(Int64(trial.plan.seconds * 1e9))
        let before = usage()
        var place = ChaosService.Place()
        _ = delivered(behind: &place)
        try await withThrowingTaskGroup(of: Void.self) { parties in
            parties.addTask { try await attack.make(SiegeForce(scene: self, end: end)) }
            for connection in kept { parties.addTask { try await self.ask(on: connection, until: end) } }
            parties.addTask { try await self.comeBy(attack, until: end) }
            try await parties.waitForAll()
        }
        try await waitForArrivals(behind: &place)
        guard let before, let after = usage() else { return }
        let cores = (after - before).inSeconds / max(0.001, (world.instant() - began).inSeconds)
        trial.note { $0.cores = cores }
    }

    /// Pushes to the origin's devices that have arrived behind that place.
    private func delivered(behind place: inout ChaosService.Place) -> Int {
        let own = Set(origin.devices.map(\.token))
        var count = 0
        // Ends: what arrives is bounded by what was asked for.
        while true {
            let (apple, google) = service.deliveries(behind: &place)
            if apple.isEmpty, google.isEmpty { return count }
            count += (apple + google).count { own.contains($0.token) }
        }
    }

    /// Whoever slows others' pushes lets their calls be answered: what they asked for must arrive as well.
    private func waitForArrivals(behind place: inout ChaosService.Place) async throws {
        let until = world.instant() + SiegePlan.arrival
        var arrived = delivered(behind: &place)
        while arrived < trial.note({ $0.answered }), world.instant() < until {
            try await world.sleep(world.instant() + .milliseconds(20))
            arrived += delivered(behind: &place)
        }
        trial.note { [arrived] ledger in ledger.undelivered = max(0, ledger.answered - arrived) }
    }

    /// CPU time of the relay so far.
    private func usage() -> Duration? { ProcessUsage.of(address.pid)?.cpu }

    // MARK: Those who behave well

    /// An origin's caller: one call after the other on a connection that it keeps. It asks once.
    private func ask(on connection: CallConnection?, until end: ContinuousClock.Instant) async throws {
        var kept = connection
        defer { kept?.close() }
        while world.instant() < end {
            let device = origin.devices[Int(world.random() % UInt64(origin.devices.count))]
            let request = try origin.notify([device], contentBytes: 100)
            let bytes = SiegeForce.whole((request.head, request.body))
            let began = world.instant()
            if kept == nil { kept = await connect(from: nil, to: port) }
            let reply = await kept?.ask(bytes, within: SiegePlan.patience)
            if reply == nil || reply?.closes == true { kept = nil }
            let span = world.instant() - began
            trial.note { $0.called(reply?.status, in: span) }
            try await world.sleep(world.instant() + SiegePlan.pause)
        }
    }

    /// In the middle of the attack: a server signs up, and an operator looks whether the relay lives.
    private func comeBy(_ attack: SiegeAttack, until end: ContinuousClock.Instant) async throws {
        let half = (end - world.instant()) / 2
        try await world.sleep(world.instant() + half)
        let number = RelayPlan.load.attacks.firstIndex { $0.name == attack.name } ?? 0
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
