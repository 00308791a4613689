import AdminIngress
import Primitives
import WireFormats

/// Zulip: servers push through a bouncer, the relay, over HTTP.
enum ZulipProtocol: HostedProtocol {
    static let word = "zulip"
    static let keys = [
        "protocol", "apps", "fcm_app", "default_ios_app_id", "keys", "sign_up", "hosts", "mx_lookup"
    ]

    static let sandboxKeys = ["keys: bouncer.keys", "sign_up: open"]

    static let setup = SetupPart(
        lines: ["sign_up: invite"],
        keys: SetupPart.Keys(key: "keys", name: "bouncer.keys") { path, world throws(CommandFailure) in
            let pair = X25519KeyPair.generate(world)
            try writeSecret(path, BouncerKeysFile.text([pair]), replacing: false)
            return Base64.text(pair.publicKey)
        },
        next: [
            "sealbell origins invite chat.example.org, for the server of your users; it sets "
                + "ZULIP_SERVICES_URL to https://HOST."
        ])

    static func read(_ instance: InstanceReader) -> ZulipSettings? { instance.zulip() }
    static func host(
        _ settings: ZulipSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try ZulipInstance(settings, making)
    }
    static var commands: ProtocolCommands {
        ProtocolCommands(
            keys: [KeysNewZulipCommand.self], keyring: [KeysRetireCommand.self],
            why: [WhyRealmCommand.self, WhyDeviceCommand.self],
            forget: [ForgetRealmCommand.self, ForgetDeviceCommand.self],
            device: [DeviceZulipCommand.self])
    }
    static func calls(_ instances: DeskInstances) -> [AdminCall] { ZulipDesk(instances: instances).calls }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { ZulipDemo(on: stage) }
}
