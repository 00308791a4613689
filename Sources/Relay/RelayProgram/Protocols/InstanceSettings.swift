import PushModel

/// What the keys of one instance say, valid and without secrets: keys are paths of files.
protocol InstanceSettings: Sendable, Hashable {
    /// Paths that an instance answers to; one that ends in a slash stands for all below it. Two instances
    /// that share one cannot stand behind one listener. Empty: no listener serves this protocol.
    static var paths: [String] { get }
    /// The same of the instance of that name, where its name or its keys decide.
    func paths(of instance: ConfiguredName) -> [String]
    /// Why no listener serves it, as a sentence; for a protocol without paths.
    static var unservedSentence: String { get }
    /// Which app a push of the service belongs to that names none; `nil`: none.
    func app(for service: PushService) -> ConfiguredName?
    /// Hosts that the instance connects to, for the doctor; push services not among them.
    var peers: [PeerAddress] { get }
    /// Files and sockets that the instance's services keep open.
    var descriptors: Int { get }
    /// Makes the keys that a sandbox's instance needs and has not. Those that are there stay, because devices
    /// hold their public halves.
    func makeSandboxKeys() throws(CommandFailure)
}

extension InstanceSettings {
    static var unservedSentence: String { "No listener serves this protocol." }
    static var isServed: Bool { !paths.isEmpty }
    func paths(of instance: ConfiguredName) -> [String] { Self.paths }
    func app(for service: PushService) -> ConfiguredName? { nil }
    var peers: [PeerAddress] { [] }
    var descriptors: Int { 0 }
    func makeSandboxKeys() throws(CommandFailure) {}
}

/// Settings of an instance that brings lanes along, beside those of apps.
protocol LaneBringing {
    /// - Parameter instance: its name.
    func lanes(of instance: ConfiguredName) -> [LaneName]
}
