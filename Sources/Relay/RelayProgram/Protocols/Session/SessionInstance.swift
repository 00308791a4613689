import AdminIngress
import Delivery
import HTTPIngress
import Primitives
import PushModel
import WireFormats

/// One Session instance: a face at listeners, and a link to the swarm.
struct SessionInstance: HostedInstance {
    let name: ConfiguredName
    private let onion: X25519KeyPair

    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    init(
        _ instance: InstanceConfiguration, _ settings: SessionSettings,
        of configuration: RelayConfiguration, on ground: HostingGround, replacing old: SessionInstance?
    ) throws(CommandFailure) {
        name = instance.name
        onion = try SessionKeyFile.read(settings.onionKeyFile)
        _ = try SessionKeyFile.core(name, state: configuration.state, ground.world)
    }

    var publicKeys: [String] { [Hex.encode(onion.publicKey)] }
}
