/// Nextcloud: servers push through a proxy, the relay, over HTTP.
enum NextcloudProtocol: HostedProtocol {
    static let word = "nextcloud"
    static let keys = [
        "protocol", "apps", "clients", "bare_path", "subscription_keys", "missing_device", "new_key", "proof",
        "private_hosts", "ca"
    ]

    static let sandboxKeys = ["bare_path: true"]

    static let setup = SetupPart(
        next: ["Build the app with the proxy address https://HOST/nextcloud-main/APP."])

    static func read(_ instance: InstanceReader) -> NextcloudSettings? { instance.nextcloud() }
    static func host(
        _ settings: NextcloudSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try NextcloudInstance(settings, making)
    }
    static var commands: ProtocolCommands { ProtocolCommands(device: [DeviceNextcloudCommand.self]) }
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? {
        try await NextcloudSandboxPeer(on: context)
    }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { NextcloudDemo(on: stage) }
}
