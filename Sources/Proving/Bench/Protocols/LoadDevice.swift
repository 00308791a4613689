import PushModel
import WireFormats

/// A device as the load's origin knows it.
struct LoadDevice: Sendable {
    var kind: PushService
    /// Hex digits at APNs; letters and digits at FCM.
    var token: String
    /// By which the origin names it.
    var name: String
    /// A random number of its own.
    var number: UInt32

    /// A device with a random token.
    ///
    /// - Parameter naming: makes the origin's name for a token.
    static func make(
        _ kind: PushService, _ world: World, naming: (String) -> String = { $0 }
    ) -> LoadDevice {
        let random = Hex.encode(world.randomBytes(32))
        // A registration token at FCM has a colon in it, an installation id has none (docs/push-services.md
        // §4.2).
        let token = kind == .apns ? random : "c\(random.prefix(21)):APA91b\(random)"
        return LoadDevice(
            kind: kind, token: token, name: naming(token), number: UInt32(truncatingIfNeeded: world.random()))
    }
}
