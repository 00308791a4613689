import PushModel
import SealbellKit
import Simulators
import WireFormats

/// A phone of one push service in a sandbox.
struct SandboxPhone: DemoPhone {
    let name: String
    let token: DeviceToken
    /// The token as its push service spells it.
    let shown: String
    let deliveries: AsyncStream<Delivery>

    /// - Parameter demo: the protocol's name.
    init(
        _ demo: String, _ service: DeviceToken.Service, _ sandbox: Sandbox, _ world: World
    ) throws(DeviceError) {
        switch service {
        case .apns:
            shown = world.inventAppleToken()
            token = try .apns(hex: shown)
            deliveries = sandbox.production.subscribe(token: shown)
        case .fcm:
            shown = world.inventGoogleAddress("demo")
            token = try .fcm(shown)
            deliveries = sandbox.fcm.subscribe(address: shown)
        }
        name = "\(demo) (\(Self.words(service)))"
    }

    var service: String { Self.words(token.service) }

    private static func words(_ service: DeviceToken.Service) -> String { service == .apns ? "APNs" : "FCM" }

    /// A text of what the push service was given for the device; empty where there is none.
    static func text(_ name: String, of delivery: Delivery) -> String {
        // What is no JSON has no such member.
        let json = try? JSONValue.parse(delivery.body)
        return (json?["message"]?["data"] ?? json)?[name]?.string ?? ""
    }
}

extension PhonesDemo where Phone == SandboxPhone {
    func apple() throws -> Phone { try Phone(Self.name, .apns, sandbox, world) }
    func google() throws -> Phone { try Phone(Self.name, .fcm, sandbox, world) }
}
