import Primitives
import PushModel
import Simulators
import WireFormats

/// A swarm of three simulated storage servers, and the instance of a relay that hears of messages from it.
struct StagedSwarm: Sendable {
    static let nodes = 0..<3
    /// How long a relay may take to show the swarm everything: a dial, a greeting, a batch.
    static let showSpan = Duration.seconds(30)

    let network: SessionNetworkSimulator
    private let onion: X25519KeyPair
    private let daemon: String

    init(_ world: World) async throws {
        onion = .generate(world)
        network = SessionNetworkSimulator(world: world)
        try await network.start()
        daemon = network.daemonEndpoint ?? ""
    }

    func instance(_ name: String) -> StagedInstance {
        let daemon = daemon
        return StagedInstance(
            name: name, publicKey: onion.publicKey,
            keyFile: ("onion.key", onion.privateKey.reveal { Hex.encode(Array($0)) } + "\n"), isServed: true
        ) { plan in
            [
                "protocol: session", "apps: [load]", "onion_key: \(plan.directory)/onion.key",
                "oxend: \"\(daemon)\""
            ]
        }
    }

    /// Accounts that every storage server watches.
    func shown() async -> Set<[UInt8]> {
        var shown = await network.watchedAccounts(at: Self.nodes.lowerBound)
        for node in Self.nodes.dropFirst() {
            shown.formIntersection(await network.watchedAccounts(at: node))
        }
        return shown
    }
}
