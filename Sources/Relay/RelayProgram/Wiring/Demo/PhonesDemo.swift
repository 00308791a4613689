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
