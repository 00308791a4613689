import NIOCore
import PushModel
import WireFormats

/// Attackers that were let in: each is a server that has signed up, with a realm of its own.
extension SiegeForce {
    func beGuests(_ attack: SiegeAttack) async throws {
        try await withThrowingTaskGroup(of: Void.self) { guests in
            for number in 0..<SiegePlan.guests {
                guests.addTask { try await self.beGuest(attack, from: "127.0.5.\(number + 1)") }
            }
            try await guests.waitForAll()
        }
    }

    private func beGuest(_ attack: SiegeAttack, from place: String) async throws {
        let guest = scene.newcomer()
        for book in guest.signUp() {
            guard await scene.once(book[0], from: place, to: scene.port) == 200 else {
                throw BenchError(.setUpRefused)
            }
        }
        switch attack {
        case .realms:
            await repeatedly(from: place) {
                let realms = (0..<SiegePlan.realmsOfUpload).map { _ in
                    UUIDText(version4From: trial.world.random(), trial.world.random()).text
                }
                return Self.whole(guest.report(realms))
            }
        case .unknownIDs:
            // Made once: what the attack shows is the relay's time, and not ours.
            let call = try notify(
                (0..<SiegePlan.idsOfCall).map { _ in LoadDevice.make(.apns, trial.world) }, by: guest)
            await repeatedly(from: place) { call }
        default: try await pushToNobody(guest, from: place)
        }
    }

    /// Registers a token that the push service has never given out, asks for a push to it, and begins anew.
    private func pushToNobody(_ guest: LoadOrigin, from place: String) async throws {
        var guest = guest
        var next: ByteBuffer?
        try await repeatedly(from: place) {
            if let call = next {
                next = nil
                return call
            }
            guest.forgetDevices()
            let registration = try guest.addDevices(1, .apns)[0]
            next = try notify(guest.devices, by: guest)
            return registration
        }
    }

    private func notify(_ devices: [LoadDevice], by guest: LoadOrigin) throws -> ByteBuffer {
        let call = try guest.notify(devices, contentBytes: 100)
        return Self.whole((call.head, call.body))
    }
}
