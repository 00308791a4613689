import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush

/// The key whose scalar is that number.
func samplePair(_ scalar: UInt64) -> Secp256k1KeyPair {
    let bytes = [UInt8](repeating: 0, count: 24) + withUnsafeBytes(of: scalar.bigEndian) { Array($0) }
    guard scalar > 0, let pair = try? Secp256k1KeyPair(secret: Secret(bytes)) else {
        preconditionFailure("small numbers but 0 are scalars of the curve")
    }
    return pair
}

/// Two people whose query topics share four bytes: found by counting up.
let peopleOfOneTopic = (samplePair(74_949), samplePair(85_646))

/// Messages of registering clients, and what a relay keeps of them.
struct SampleClient {
    let key: Secp256k1KeyPair
    let server: PublicPoint
    var person: Secret { StatusHash.person(key.point) }
    private let token = Secret("a6712c96-9eb0-4df5-bc7c-041602a28ea7".utf8)

    init(_ key: Secp256k1KeyPair, at server: PublicPoint) { (self.key, self.server) = (key, server) }

    func registration(_ version: UInt64, _ installation: String = "phone") -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = .firebase
        registration.deviceToken = Secret("device-of-\(installation)".utf8)
        registration.installationID = Secret(installation.utf8)
        registration.accessToken = token
        registration.enabled = true
        registration.version = version
        registration.grant = Grant.sign(by: key, server: server, accessToken: token)
        return registration
    }

    func end(_ version: UInt64, _ installation: String = "phone") -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.installationID = Secret(installation.utf8)
        registration.version = version
        registration.unregister = true
        return registration
    }

    func wrapped(_ registration: PushNotificationRegistration, _ world: World) -> Secret {
        let box = StatusBox.seal(registration.encoded(), from: key, to: server, world)
        return MetadataMessage.wrap(box, .registration, by: key)
    }

    /// What is answered: `nil` for a success.
    func fault(
        _ registration: PushNotificationRegistration, _ rig: StatusRig
    ) async -> PushNotificationRegistrationResponse.Fault? {
        guard case .registration(let answer)? = await rig.receive(wrapped(registration, rig.world))?.body
        else { return .unknown }
        return answer.success ? nil : answer.error
    }

    /// What the relay makes of it; nothing is written.
    func verdict(
        _ registration: PushNotificationRegistration, _ rig: StatusRig
    ) async throws -> StatusRelay.StatusVerdict? {
        let message = try MetadataMessage(reading: wrapped(registration, rig.world))
        guard let inbound = try StatusInbound(message) else { return nil }
        return try await rig.relay.receive(inbound)
    }

    func followed(_ rig: StatusRig) async throws -> [FollowedTopic] {
        try await rig.store.page(rig.relay.keys.followed, after: 0, limit: 100)
            .compactMap { FollowedTopic($0) }.filter { $0.person.map { $0 == person } ?? false }
    }
}
