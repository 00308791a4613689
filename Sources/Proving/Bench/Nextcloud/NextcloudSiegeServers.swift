import NIOCore
import NextcloudPush
import PushModel
import RSAKeys

extension SiegeScene {
    private var world: World { trial.world }

    /// A server that the relay does not know yet.
    func nextcloud(
        instance: String = NextcloudLoad.instance, keys: [RSAPrivateKey] = [], key: String? = nil
    ) -> NextcloudLoadOrigin {
        NextcloudLoadOrigin(
            host: "127.0.0.1:\(port)", world: world, instance: instance, keys: keys, subscriptionKey: key)
    }

    /// Registers devices, one after the other, at most a hundred from each address.
    ///
    /// - Parameter place: the address that the n-th hundred comes from.
    /// - Throws: `.setUpRefused`, `.unreachable`.
    func register(_ prepared: PreparedRequests, at place: (Int) -> String) async throws {
        for first in stride(from: 0, to: prepared.count, by: SiegePlan.registrations) {
            let place = place(first / SiegePlan.registrations)
            guard let connection = await connect(from: place, to: port) else {
                throw BenchError(.unreachable)
            }
            defer { connection.close() }
            for request in first..<min(prepared.count, first + SiegePlan.registrations) {
                guard await connection.ask(prepared[request], within: SiegePlan.patience)?.status == 200
                else {
                    throw BenchError(.setUpRefused)
                }
            }
        }
    }

    /// A server with one user, whose device is registered here and at its push service.
    func honest(
        _ number: Int, _ kind: PushService? = nil, instance: String = NextcloudLoad.instance,
        key: String? = nil
    ) async throws -> NextcloudLoadOrigin {
        var server = nextcloud(instance: instance, keys: [try .generate()], key: key)
        let kind = kind ?? (number.isMultiple(of: 2) ? .fcm : .apns)
        let prepared = try server.addDevices(1, kind)
        try await register(prepared) { _ in "127.0.6.\(number + 1)" }
        for device in server.devices { service.register(device, bundle: RelayPlan.bundle) }
        return server
    }

    /// - Parameter kind: of their users' phones; `nil`: of both in turn.
    func honestServers(_ kind: PushService? = nil) async throws -> [NextcloudLoadOrigin] {
        var servers: [NextcloudLoadOrigin] = []
        for number in 0..<SiegePlan.servers { servers.append(try await honest(number, kind)) }
        return servers
    }
}

extension SiegeForce {
    /// One call after the other on a connection that is kept, each once, and noted.
    func ask(
        from place: String, _ pause: Duration, _ make: () throws -> LoadCall
    ) async throws {
        var kept: CallConnection?
        defer { kept?.close() }
        while !isOver {
            let call = try make()
            let began = trial.world.instant()
            let status = await answer(call, from: place, &kept)
            let span = trial.world.instant() - began
            trial.note { $0.called(status, in: span) }
            try await trial.world.sleep(trial.world.instant() + pause)
        }
    }

    /// Has a user of that server called again and again. A call counts when it has arrived.
    func ring(
        _ server: NextcloudLoadOrigin, from place: String, _ arrivals: SiegeArrivals
    ) async throws {
        var kept: CallConnection?
        defer { kept?.close() }
        while !isOver {
            let call = try server.notify(server.devices, as: .call)
            let began = trial.world.instant()
            var status = await answer(call, from: place, &kept)
            if status == 200 {
                let hasArrived = try await arrivals.wait(within: SiegePlan.patience) { arrivals in
                    call.marks.allSatisfy { arrivals.has($0) }
                }
                if !hasArrived { status = nil }
            }
            let span = trial.world.instant() - began
            trial.note { [status] in $0.called(status, in: span) }
            try await trial.world.sleep(trial.world.instant() + SiegePlan.ringPause)
        }
    }

    private func answer(_ call: LoadCall, from place: String, _ kept: inout CallConnection?) async -> Int? {
        if kept == nil { kept = await scene.connect(from: place, to: scene.port) }
        let reply = await kept?.ask(ByteBuffer((call.head, call.body)), within: SiegePlan.patience)
        if reply == nil || reply?.closes == true {
            kept?.close()
            kept = nil
        }
        return reply?.status
    }
}

/// Bodies that are begun, and never ended, each by a client of its own.
final class SiegeStanding: Sendable {
    private let scene: SiegeScene
    private let connections: [CallConnection]
    private let replies: [EventLoopFuture<HTTPReply?>]

    /// - Parameter bytes: the head, and what is sent of the body.
    /// - Throws: `.unreachable`.
    init(_ scene: SiegeScene, _ bytes: ByteBuffer) async throws {
        self.scene = scene
        var connections: [CallConnection] = []
        for number in 0..<SiegePlan.standingBodies {
            guard let made = await scene.connect(from: "127.0.7.\(number + 1)", to: scene.port) else {
                throw BenchError(.unreachable)
            }
            connections.append(made)
        }
        self.connections = connections
        replies = connections.map { $0.begin(bytes, within: .seconds(3_600)) }
    }

    /// Stands to the end, and notes what was heard.
    func stand(_ force: SiegeForce) async {
        // Ends early only when the trial is cancelled.
        try? await force.trial.world.sleep(force.end)
        for connection in connections { connection.close() }
        for reply in replies {
            // It ends with `nil`, and never fails.
            let status = (try? await reply.get())??.status
            force.trial.note { $0.attacker(heard: status) }
        }
    }
}
