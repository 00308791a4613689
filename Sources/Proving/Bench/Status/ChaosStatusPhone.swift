import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// One installation of a person of its own: its registrations, and notifications for it, made by hand, so
/// that a trial decides on each byte.
struct ChaosStatusPhone: Sendable {
    let token: String
    private let person: Secp256k1KeyPair
    private let server: PublicPoint
    private var form = PushNotificationRegistration()

    init(_ target: LoadDevice, bundle: String, at server: PublicPoint, _ world: World) {
        var random = SystemRandomNumberGenerator()
        token = target.token
        person = .generate(world)
        self.server = server
        form.tokenType = target.kind == .apns ? .apn : .firebase
        form.deviceToken = Secret(token.utf8)
        form.apnTopic = Secret(target.kind == .apns ? Array(bundle.utf8) : [])
        (form.installationID, form.accessToken) = (Draw.uuid(&random), Draw.uuid(&random))
        form.enabled = true
        form.grant = Grant.sign(by: person, server: server, accessToken: form.accessToken)
    }

    /// Whom answers go to.
    var key: Secp256k1KeyPair { person }

    /// The registration of the next version.
    ///
    /// - Returns: the sealed form, and what its answer names.
    mutating func registration(_ world: World) -> (box: Secret, id: [UInt8]) {
        form.version += 1
        let box = StatusBox.seal(form.encoded(), from: person, to: server, world)
        return (box, EndMessages.requestID(box).reveal { Array($0) })
    }

    /// One notification of a request; its sealed message is random and names it.
    func entry(_ world: World) -> (entry: PushNotification, mark: String) {
        let message = world.randomBytes(32)
        var entry = PushNotification()
        entry.accessToken = form.accessToken
        entry.installationID = form.installationID
        entry.publicKey = StatusHash.person(person.point)
        entry.chatID = Secret(world.randomBytes(StatusLimits.hashBytes))
        entry.author = Secret(world.randomBytes(StatusLimits.hashBytes))
        entry.message = Secret(message)
        entry.type = .message
        return (entry, "0x" + Hex.encode(message))
    }

    /// What names the notification in a body that reached a push service; `nil`: nothing does.
    static func mark(in body: [UInt8]) -> String? {
        // A body that is no JSON is none of ours.
        guard let json = try? JSONValue.parse(body) else { return nil }
        return (json["encryptedMessage"] ?? json["message"]?["data"]?["encryptedMessage"])?.string
    }
}
