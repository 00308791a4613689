import NIOCore
import PushModel
import WireFormats

extension ZulipAttacks {
    /// Attackers that were let in: each is a server that has signed up, with a realm of its own.
    static func guests(
        _ name: String, _ act: @escaping @Sendable (ZulipGuest) async throws -> Void
    ) -> SiegeAttack {
        SiegeAttack(name) { force in
            try await withThrowingTaskGroup(of: Void.self) { guests in
                for number in 0..<SiegePlan.guests {
                    guests.addTask { try await act(try await .signUp(force, from: "127.0.5.\(number + 1)")) }
                }
                try await guests.waitForAll()
            }
        }
    }
}

/// A server that was let in and means ill.
struct ZulipGuest: Sendable {
    private let force: SiegeForce
    private let place: String
    private let server: ZulipLoadOrigin

    static func signUp(_ force: SiegeForce, from place: String) async throws -> ZulipGuest {
        let scene = force.scene
        let server = ZulipLoadOrigin(
            host: "127.0.0.1:\(scene.port)", publicKey: scene.stage.publicKey, bundle: RelayPlan.bundle,
            world: force.trial.world)
        for book in server.signUp() {
            guard await scene.once(book[0], from: place, to: scene.port) == 200 else {
                throw BenchError(.setUpRefused)
            }
        }
        return ZulipGuest(force: force, place: place, server: server)
    }

    private var world: World { force.trial.world }

    func uploadRealms() async throws {
        await force.repeatedly(from: place) {
            let realms = (0..<SiegePlan.realmsOfUpload).map { _ in
                UUIDText(version4From: world.random(), world.random()).text
            }
            return ByteBuffer(server.report(realms))
        }
    }

    func askForUnknown() async throws {
        // Made once: what the attack shows is the relay's time, and not ours.
        let call = try notify(
            (0..<SiegePlan.idsOfCall).map { _ in ZulipLoadOrigin.makeDevice(.apns, world) }, by: server)
        await force.repeatedly(from: place) { call }
    }

    /// Registers a token that the push service has never given out, asks for a push to it, and begins anew.
    func pushToNobody() async throws {
        var server = server
        var next: ByteBuffer?
        try await force.repeatedly(from: place) {
            if let call = next {
                next = nil
                return call
            }
            server.forgetDevices()
            let registration = try server.addDevices(1, .apns)[0]
            next = try notify(server.devices, by: server)
            return registration
        }
    }

    /// Registers a phone whose quota at its push service is used up, and asks for pushes to it.
    func exhaustPhone() async throws {
        var server = server
        let registration = try server.addDevices(1, .fcm)[0]
        guard await force.scene.once(registration, from: place, to: force.scene.port) == 200 else {
            throw BenchError(.setUpRefused)
        }
        force.scene.service.exhaust(server.devices[0])
        // Each is sealed anew: a repeat would be known again.
        try await force.repeatedly(from: place) { try notify(server.devices, by: server) }
    }

    private func notify(_ devices: [LoadDevice], by server: ZulipLoadOrigin) throws -> ByteBuffer {
        let call = try server.notify(devices, contentBytes: 100)
        return ByteBuffer((call.head, call.body))
    }
}
