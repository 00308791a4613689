import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import Synchronization
import WireFormats

/// A Waku node of this process, an instance of Status that reads from it, and those who wait there for its
/// answers, `Waiting` what is known of each.
final class StagedNode<Waiting: Sendable>: Sendable {
    /// The instance's.
    let pair: Secp256k1KeyPair
    let network = WakuNetworkSimulator()
    let node: WakuNodeSimulator
    private let url: String
    /// By the content topic of answers, which several may share.
    private let waiting = Mutex<[String: [(key: Secp256k1KeyPair, waiting: Waiting)]]>([:])

    init(_ setting: ChaosSetting) async throws {
        pair = .generate(setting.world)
        node = WakuNodeSimulator(on: network, eventLoopGroup: setting.group)
        // As operators are told to have it: what comes while no relay is there waits.
        node.turn { $0.cacheMessages = 5_000 }
        try await node.start()
        url = node.url ?? ""
    }

    func instance(_ name: String) -> StagedInstance { .status(name, pair, node: url) }

    /// From now on answers to that key are heard.
    func wait(_ key: Secp256k1KeyPair, _ value: Waiting) {
        let topic = WakuTopic.partitioned(of: key.point).contentTopic
        waiting.withLock { $0[topic, default: []].append((key, value)) }
    }

    /// What the relay has said to one of those who wait. Topics are shared: who cannot open a message was not
    /// meant.
    func heard(_ message: SimulatedWakuMessage) -> (answer: MetadataMessage, by: Waiting)? {
        let recipients = waiting.withLock { $0[message.contentTopic] ?? [] }
        let sealed = WakuMessage(
            payload: Secret(message.payload), contentTopic: message.contentTopic,
            timestamp: message.timestamp)
        for recipient in recipients {
            guard let opened = EndMessages.open(sealed, with: recipient.key), opened.signer == pair.point
            else { continue }
            return (opened, recipient.waiting)
        }
        return nil
    }

    /// Wraps, signs and seals to the relay.
    func message(
        _ type: MessageType, _ payload: Secret, by key: Secp256k1KeyPair, _ world: World
    ) -> SimulatedWakuMessage {
        var random = SystemRandomNumberGenerator()
        let sealed = EndMessages.seal(
            type, payload, signedBy: key, to: pair.point, on: .partitioned(of: pair.point), world.now(),
            &random)
        return SimulatedWakuMessage(
            payload: sealed.payload.reveal { Array($0) }, contentTopic: sealed.contentTopic,
            timestamp: sealed.timestamp)
    }
}

extension StagedInstance {
    /// An instance of Status.
    ///
    /// - Parameter node: the URL of its Waku node.
    /// - Parameter more: further lines of its configuration.
    static func status(
        _ name: String, _ pair: Secp256k1KeyPair, node: String, _ more: [String] = []
    ) -> StagedInstance {
        StagedInstance(
            name: name, publicKey: [],
            keyFile: ("status.key", pair.secret.reveal { Hex.encode(Array($0)) } + "\n"), isServed: false
        ) { plan in
            [
                "protocol: status", "apps: [load]", "key_file: \(plan.directory)/status.key",
                "waku: { url: \"\(node)\" }"
            ] + more
        }
    }
}
