import AdminIngress
import ArgumentParser
import PushModel

/// A protocol that instances of a relay speak: everything that this program must know of it beside its roles,
/// in one folder (docs/guides/adding-a-protocol.md). ``HostedProtocols`` lists them.
///
/// Configuration, wiring, desks, sandbox, demo, reload and doctor go through the list and name none of them.
protocol HostedProtocol: Sendable {
    /// What an instance's own keys say.
    associatedtype Settings: InstanceSettings

    /// The value of `instances.NAME.protocol`.
    static var word: String { get }
    /// The keys of an instance, `protocol` and `apps` among them.
    static var keys: [String] { get }
    /// Lines of the built-in sandbox's instance, such as `keys: bouncer.keys`.
    static var sandboxKeys: [String] { get }
    /// Reads those keys but the two. Faults are noted in the reader's context.
    ///
    /// - Returns: `nil` when a fault leaves nothing to go on with.
    static func read(_ instance: InstanceReader) -> Settings?
    /// What each family of metrics of its own says to whoever scrapes it: one line, without a backslash.
    static var metricHelp: [String: String] { get }
    /// Commands of its own, below those that all protocols share.
    static var commands: ProtocolCommands { get }
    /// Calls of its own at the admin door, about its instances.
    static func calls(_ instances: DeskInstances) -> [AdminCall]
    /// What stands beside a sandbox for it; `nil`: nothing.
    static func sandboxPeer(on ground: SandboxGround) async throws -> (any SandboxPeer)?
    /// One notification from end to end against a running sandbox; `nil` where the configuration has no
    /// instance that could be shown.
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)?
}

extension HostedProtocol {
    static var metricHelp: [String: String] { [:] }
    static var commands: ProtocolCommands { ProtocolCommands() }
    static func calls(_ instances: DeskInstances) -> [AdminCall] { [] }
    static func sandboxPeer(on ground: SandboxGround) async throws -> (any SandboxPeer)? { nil }
    static func demo(on stage: DemoStage) -> (any ProtocolDemo)? { nil }
}

/// Commands that one protocol adds to the program.
struct ProtocolCommands {
    /// Below `sealbell keys new`.
    var keys: [any ParsableCommand.Type] = []
    /// Below `sealbell why`.
    var why: [any ParsableCommand.Type] = []
    /// Below `sealbell forget`.
    var forget: [any ParsableCommand.Type] = []
}

/// What the keys of one instance say, valid and without secrets: keys are paths of files.
protocol InstanceSettings: Sendable, Hashable {
    /// Beginnings of the paths that an instance answers to. Two instances that share one cannot stand behind
    /// one listener. Empty: no listener serves this protocol.
    static var paths: [String] { get }
    /// Why no listener serves it, as a sentence; for a protocol without paths.
    static var unservedSentence: String { get }
    /// Which app a push of the service belongs to that names none; `nil`: none.
    func app(for service: PushService) -> ConfiguredName?
    /// Hosts that the instance connects to, for the doctor; push services not among them.
    var peers: [ReachChecks.Place] { get }
    /// Files and sockets that the instance's services keep open.
    var descriptors: Int { get }
    /// Makes the keys that a sandbox's instance needs and has not. Those that are there stay, because devices
    /// hold their public halves.
    func makeSandboxKeys() throws(CommandFailure)
    /// Makes the instance; nothing is in force yet.
    ///
    /// - Parameter old: what stood under its name before a reload, perhaps of another protocol.
    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    func host(
        _ instance: InstanceConfiguration, in configuration: RelayConfiguration, on ground: HostingGround,
        replacing old: (any HostedInstance)?
    ) throws(CommandFailure) -> any HostedInstance
}

extension InstanceSettings {
    static var unservedSentence: String { "No listener serves this protocol." }
    static var isServed: Bool { !paths.isEmpty }
    func app(for service: PushService) -> ConfiguredName? { nil }
    var peers: [ReachChecks.Place] { [] }
    var descriptors: Int { 0 }
    func makeSandboxKeys() throws(CommandFailure) {}
}
