import AdminIngress
import ArgumentParser
import PushModel

/// A protocol that instances of a relay speak: everything that this program must know of it beside its roles,
/// in one folder (docs/guides/adding-a-protocol.md). ``Hosting`` lists them.
///
/// Configuration, wiring, desks, sandbox, demo, reload and doctor go through the list and name none of them.
protocol HostedProtocol: Sendable {
    /// What an instance's own keys say.
    associatedtype Settings: InstanceSettings

    /// The value of `instances.NAME.protocol`.
    static var word: String { get }
    /// The section of the configuration in which the one instance stands that there may be of it, and the
    /// instance's name; `nil`: instances stand below `instances`.
    static var section: String? { get }
    /// The keys of an instance, `protocol` and `apps` among them.
    static var keys: [String] { get }
    /// The key beside which an instance may leave `apps` out, because what it names has the credentials;
    /// `nil`: none.
    static var keyInsteadOfApps: String? { get }
    /// Lines of the built-in sandbox's instance, such as `keys: bouncer.keys`.
    static var sandboxKeys: [String] { get }
    /// What `config init` asks about it.
    static var setup: SetupPart { get }
    /// Reads those keys but the two. Faults are noted in the reader's context.
    ///
    /// - Returns: `nil` when a fault leaves nothing to go on with.
    static func read(_ instance: InstanceReader) -> Settings?
    /// What is missing in a configuration that has only these other instances, as a sentence; `nil`: nothing.
    static func lack(_ settings: any InstanceSettings, beside others: [InstanceConfiguration]) -> String?
    /// Makes an instance; nothing is in force yet.
    ///
    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    static func host(
        _ settings: Settings, _ making: InstanceMaking
    ) throws(CommandFailure) -> any HostedInstance
    /// What each family of metrics of its own says to anyone who scrapes it: one line, without a backslash.
    static var metricHelp: [String: String] { get }
    /// Commands of its own, below those that all protocols share.
    static var commands: ProtocolCommands { get }
    /// Calls of its own at the admin listener, about its instances.
    static func calls(_ instances: DeskInstances) -> [AdminCall]
    /// What stands beside a sandbox for it; `nil`: nothing.
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)?
    /// One notification from end to end against a running sandbox; `nil` where the configuration has no
    /// instance that could be shown.
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)?
}

extension HostedProtocol {
    static var section: String? { nil }
    static var sandboxKeys: [String] { [] }
    static var keyInsteadOfApps: String? { nil }
    static var setup: SetupPart { SetupPart() }
    static var metricHelp: [String: String] { [:] }
    static func lack(_ settings: any InstanceSettings, beside others: [InstanceConfiguration]) -> String? {
        nil
    }
    static var commands: ProtocolCommands { ProtocolCommands() }
    static func calls(_ instances: DeskInstances) -> [AdminCall] { [] }
    static func sandboxPeer(on context: SandboxContext) async throws -> (any SandboxPeer)? { nil }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { nil }
}

/// Commands that one protocol adds to the program.
struct ProtocolCommands {
    /// Below `sealbell keys new`.
    var keys: [any ParsableCommand.Type] = []
    /// Below `sealbell keys`.
    var keyring: [any ParsableCommand.Type] = []
    /// Below `sealbell why`.
    var why: [any ParsableCommand.Type] = []
    /// Below `sealbell forget`.
    var forget: [any ParsableCommand.Type] = []
    /// Below `sealbell device`.
    var device: [any ParsableCommand.Type] = []
}
