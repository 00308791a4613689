import AdminIngress

/// Status: clients register, ask and send over a Waku node.
enum StatusProtocol: HostedProtocol {
    static let word = "status"
    static let keys = [
        "protocol", "apps", "fcm_app", "bundle", "key_file", "waku", "gorush", "compatibility",
        "registrations_per_minute", "queries_per_minute", "requests_per_minute"
    ]

    static let keyInsteadOfApps: String? = "gorush"
    static let sandboxKeys = ["key_file: status.key"]

    static let setup = SetupPart(
        questions: [
            SetupPart.Question(
                key: "waku", words: "Where the Waku node answers", form: .member("url"),
                standard: "http://127.0.0.1:8645")
        ],
        keys: SetupPart.Keys(key: "key_file", name: "status.key", make: StatusKeyFile.make),
        next: [
            "Run a Waku node, which this relay has for itself, where the configuration has it "
                + "(docs/guides/status.md)."
        ])

    static func read(_ instance: InstanceReader) -> StatusInstanceSettings? { instance.status() }
    static func host(
        _ settings: StatusInstanceSettings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance {
        try StatusInstance(settings, making)
    }
    static func calls(_ instances: DeskInstances) -> [AdminCall] {
        [.statistics("/status/statistics", of: StatusInstance.self, instances)]
    }
    static var commands: ProtocolCommands {
        ProtocolCommands(keys: [KeysNewStatusCommand.self], device: [DeviceStatusCommand.self])
    }
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? {
        try await StatusSandboxPeer(on: context)
    }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { StatusDemo(on: stage) }
}
