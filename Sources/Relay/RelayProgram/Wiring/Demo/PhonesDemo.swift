import PushModel
import SealbellKit
import Simulators
import WireFormats

/// What a demo could not do; ends its conversation.
struct DemoFault: Error { let words: String }

/// A phone that a demo plays.
protocol DemoPhone: Sendable {
    /// The conversation's name: protocol and push service.
    var name: String { get }
}

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

/// A demo that has the same to say to a phone of Apple's and to one of Google's.
protocol PhonesDemo: ProtocolDemo {
    associatedtype Phone: DemoPhone

    /// The protocol's.
    static var name: String { get }
    var sandbox: Sandbox { get }
    var world: World { get }
    /// How long each step may take.
    var patience: Duration { get }

    func apple() throws -> Phone
    func google() throws -> Phone
    /// - Throws: `DemoFault` where a step did not succeed, and whatever the parties throw.
    func converse(_ phone: Phone) async throws -> [DemoReport]
}

extension PhonesDemo {
    func run() async -> [DemoReport] {
        do {
            var reports: [DemoReport] = []
            for phone in [try apple(), try google()] { reports += await report(phone) }
            return reports
        } catch {
            return [DemoReport(Self.name, [], opened: false, fault: "the phones were not made")]
        }
    }

    private func report(_ phone: Phone) async -> [DemoReport] {
        do {
            return try await converse(phone)
        } catch let fault as DemoFault {
            return [DemoReport(phone.name, [], opened: false, fault: fault.words)]
        } catch {
            return [DemoReport(phone.name, [], opened: false, fault: "the parties did not understand")]
        }
    }

    /// The first push that comes for a phone.
    ///
    /// - Throws: `DemoFault` when none comes in time.
    func first(of deliveries: AsyncStream<Delivery>) async throws(DemoFault) -> Delivery {
        guard let delivery = await world.firstDelivery(within: patience, of: deliveries) else {
            let seconds = patience.wholeMilliseconds / 1_000
            throw DemoFault(words: "nothing reached the push service within \(seconds) s")
        }
        return delivery
    }
}

extension PhonesDemo where Phone == SandboxPhone {
    func apple() throws -> Phone { try Phone(Self.name, .apns, sandbox, world) }
    func google() throws -> Phone { try Phone(Self.name, .fcm, sandbox, world) }
}

extension World {
    /// A device token as Apple gives them out, 64 hexadecimal digits; no push service has given it out.
    func inventAppleToken() -> String { Hex.encode(randomBytes(32)) }

    /// A registration token as Google gives them out; no push service has given it out.
    ///
    /// - Parameter start: what shows whose invention it is.
    func inventGoogleAddress(_ start: String) -> String {
        let hex = Hex.encode(randomBytes(32))
        return "\(start)-\(hex.prefix(17)):APA91b\(hex)\(hex)"
    }
}
