import AdminIngress

/// Session: devices subscribe, and storage nodes tell the relay what came for them.
enum SessionProtocol: HostedProtocol {
    static let word = "session"
    static let keys = [
        "protocol", "apps", "services", "onion_key", "oxend", "oxend_key", "plain_http", "subkeys",
        "metadata", "fcm_high"
    ]

    static let sandboxKeys = ["onion_key: onion.key"]

    static let setup = SetupPart(
        questions: [
            SetupPart.Question(
                key: "oxend", words: "Where oxend listens", standard: "ipc:///var/lib/oxen/oxend.sock")
        ],
        keys: SetupPart.Keys(key: "onion_key", name: "onion.key", make: SessionKeyFile.make),
        next: [
            "Let oxend, synchronised, listen on this machine where the configuration has it "
                + "(docs/guides/session.md).",
            "Build the app with the push server https://HOST and the public key above."
        ])

    static func read(_ instance: InstanceReader) -> SessionSettings? { instance.session() }
    static func host(
        _ settings: SessionSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try SessionInstance(settings, making)
    }
    static func calls(_ instances: DeskInstances) -> [AdminCall] {
        [.statistics("/session/statistics", of: SessionInstance.self, instances)]
    }
    static var commands: ProtocolCommands {
        ProtocolCommands(keys: [KeysNewSessionCommand.self], device: [DeviceSessionCommand.self])
    }
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? {
        try await SessionSandboxPeer(on: context)
    }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { SessionDemo(on: stage) }
}
