import AdminIngress

/// Zulip: servers push through a bouncer, the relay, over HTTP.
enum ZulipProtocol: HostedProtocol {
    static let word = "zulip"
    static let keys = [
        "protocol", "apps", "fcm_app", "default_ios_app_id", "keys", "sign_up", "hosts", "mx_lookup"
    ]

    static let sandboxKeys = ["keys: bouncer.keys", "sign_up: open"]

    static func read(_ instance: InstanceReader) -> ZulipSettings? { instance.zulip() }
    static func host(
        _ settings: ZulipSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try ZulipInstance(settings, making)
    }
    static var commands: ProtocolCommands {
        ProtocolCommands(
            keys: [KeysNewZulipCommand.self], keyring: [KeysListCommand.self, KeysRetireCommand.self],
            why: [WhyRealmCommand.self, WhyDeviceCommand.self],
            forget: [ForgetRealmCommand.self, ForgetDeviceCommand.self],
            device: [DeviceZulipCommand.self])
    }
    static func calls(_ instances: DeskInstances) -> [AdminCall] { ZulipDesk(instances: instances).calls }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { ZulipDemo(on: stage) }
}
