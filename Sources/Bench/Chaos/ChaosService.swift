import NIOCore
import PushModel
import Simulators

/// The push service of a chaos trial, and what is read from it.
final class ChaosService: Sendable {
    let apnsKey: APNsKey
    let authorityPEM: String
    let apnsURL: String
    private let apns: APNsSimulator

    init(authority: CertificateAuthority, group: any EventLoopGroup) async throws {
        apnsKey = APNsKey()
        authorityPEM = authority.certificatePEM
        var configuration = APNsSimulatorConfiguration(
            environment: .production, keys: [apnsKey.registration()])
        // Collected every 10 ms; ten seconds of full load fit.
        configuration.keptDeliveries = 1 << 18
        configuration.keptBodyBytes = 1 << 29
        configuration.rememberedIDs = 1 << 20
        apns = try APNsSimulator(configuration, authority: authority, eventLoopGroup: group)
        apnsURL = "https://127.0.0.1:\(try await apns.start())"
    }

    func stop() async { await apns.stop() }

    func register(_ device: LoadDevice, bundle: String) {
        apns.register(device.token, as: APNsDevice(topics: [bundle]))
    }

    /// Turns the service to one of its moods: well, failing now and then, slow, or failing altogether. What
    /// it fails at stays owed, so that there is something to lose.
    func misbehave(_ random: ChaosRandom) {
        let mood = random.below(4)
        apns.turn { $0.errorShare = [0, 0.3, 0, 1][mood] }
        apns.turnConnections { $0.answerDelay = mood == 2 ? .exponential(mean: .milliseconds(40)) : .none }
    }

    func answerWell() {
        apns.turn { $0.errorShare = 0 }
        apns.turnConnections { $0.answerDelay = .none }
    }

    /// Moves deliveries into the ledger until cancelled.
    func collect(into shared: ChaosTrial.Shared, world: World) async throws {
        var last = 0
        while true {
            let deliveries = apns.deliveries(after: last, limit: 4096)
            if let newest = deliveries.last {
                last = newest.number
                shared.ledger { ledger in
                    for delivery in deliveries {
                        ledger.delivered(Self.mark(delivery.body), id: delivery.id, at: delivery.receivedAt)
                    }
                }
            } else {
                try await world.sleep(world.instant() + .milliseconds(10))
            }
        }
    }

    /// Waits until so many requests were answered; in the meantime a third of the sends fail once.
    func untilEnough(_ trial: ChaosTrial) async throws {
        apns.turn { $0.errorShare = 0.3 }
        let wanted = trial.plan.trace?.requests ?? 0
        while trial.shared.ledger({ $0.acknowledgedRequests }) < wanted {
            try await trial.pause(milliseconds: 20)
        }
    }

    /// What names a push: the first 15 characters of its ciphertext, 90 random bits. Short enough to need no
    /// memory of its own.
    static func mark(ofCiphertext text: String) -> String { String(text.prefix(15)) }

    private static func mark(_ body: [UInt8]) -> String {
        let label = Array("\"encrypted_data\":\"".utf8)
        guard body.count > label.count + 15 else { return "" }
        for start in 0..<(body.count - label.count - 15)
        where body[start] == label[0] && body[start..<start + label.count].elementsEqual(label) {
            return String(decoding: body[(start + label.count)..<(start + label.count + 15)], as: UTF8.self)
        }
        return ""
    }
}
