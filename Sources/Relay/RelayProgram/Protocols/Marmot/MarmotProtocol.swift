/// Marmot: push notification servers that listen at Nostr relays.
enum MarmotProtocol: HostedProtocol {
    static let word = "marmot"
    static let keys = [
        "protocol", "apps", "bundle", "key_file", "old_key_files", "relays", "formats", "mode", "backlog",
        "wake_pause", "content_memory", "cpu_percent", "author_per_minute", "self_test", "proxy", "ca"
    ]

    static let sandboxKeys = ["key_file: nostr.key"]

    static let setup = SetupPart(
        questions: [
            SetupPart.Question(
                key: "relays", words: "Inbox relays (wss://…), with commas between", form: .list)
        ],
        keys: SetupPart.Keys(key: "key_file", name: "nostr.key", make: NostrKeyFile.make))

    static func read(_ instance: InstanceReader) -> MarmotSettings? { instance.marmot() }
    static func host(
        _ settings: MarmotSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try MarmotInstance(settings, making)
    }
    static var commands: ProtocolCommands {
        ProtocolCommands(keys: [KeysNewNostrCommand.self], device: [DeviceMarmotCommand.self])
    }
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? {
        try await MarmotSandboxPeer(on: context)
    }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { MarmotDemo(on: stage) }
}
