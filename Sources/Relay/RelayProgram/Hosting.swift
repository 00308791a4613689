import PushModel

/// The protocols and push services of a program. Everything goes through these two lists, and names none of
/// what is in them.
struct Hosting: Sendable {
    /// Each with a word of its own.
    var protocols: [any HostedProtocol.Type]
    /// Each with a word of its own, in the order in which an app's are looked at.
    var services: [any HostedService.Type]
    /// Words of protocols that a later release speaks.
    var plannedProtocols: [String] = []
    /// Keys of push services that a later release speaks.
    var plannedServices: [String] = []

    var protocolWords: [String] { protocols.map { $0.word } }
    var serviceWords: [String] { services.map { $0.word } }

    func service(_ word: String) -> (any HostedService.Type)? { services.first { $0.word == word } }

    /// What a store may owe: to push services, and an origin's calls.
    var messages: PushServices { PushServices(services.map { $0.message } + [UplinkMessage.self]) }

    /// Of all protocols (``HostedProtocol/metricHelp``).
    var metricHelp: [String: String] { protocols.reduce(into: [:]) { $0.merge($1.metricHelp) { $1 } } }

    /// The push services as a sentence offers them: `a, b or c`.
    var serviceChoice: String { serviceWords.listed("or") }

    /// Where else to look when a push service does not answer; `nil`: nowhere.
    var detours: String? {
        let found = services.compactMap { $0.detour }
        return found.isEmpty ? nil : found.listed("and")
    }

    /// The push services that a sandbox simulates.
    var simulated: String { services.map { $0.simulated }.listed("and") }

    /// Makes an instance of whatever protocol; nothing is in force yet.
    ///
    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    func host(_ making: InstanceMaking) throws(CommandFailure) -> any HostedInstance {
        for spoken in protocols {
            if let made = try Self.host(spoken, making) { return made }
        }
        throw CommandFailure(.software, "instances.\(making.name): nothing hosts this protocol.")
    }

    /// Instance → the word of its protocol.
    func words(of instances: [InstanceConfiguration]) -> [String: String] {
        instances.reduce(into: [:]) { words, instance in
            words[instance.name.text] = protocols.first { Self.isOf($0, instance) }?.word
        }
    }

    private static func isOf<Spoken: HostedProtocol>(
        _: Spoken.Type, _ instance: InstanceConfiguration
    ) -> Bool {
        instance.settings is Spoken.Settings
    }

    private static func host<Spoken: HostedProtocol>(
        _: Spoken.Type, _ making: InstanceMaking
    ) throws(CommandFailure) -> (any HostedInstance)? {
        guard let settings = making.instance.settings as? Spoken.Settings else { return nil }
        return try Spoken.host(settings, making)
    }
}

// MARK: For the reader of a configuration

extension Hosting {
    var vocabulary: Vocabulary {
        Vocabulary(
            protocols: protocols.filter { $0.section == nil }.map { Self.kind($0) },
            sections: protocols.filter { $0.section != nil }.map { Self.kind($0) },
            services: services.map { Self.kind($0) },
            plannedProtocols: plannedProtocols, plannedServices: plannedServices, sandbox: sandboxText)
    }

    private static func kind<Spoken: HostedProtocol>(_: Spoken.Type) -> Vocabulary.InstanceKind {
        Vocabulary.InstanceKind(
            word: Spoken.section ?? Spoken.word, keys: Spoken.keys, keyInsteadOfApps: Spoken.keyInsteadOfApps,
            isServed: Spoken.Settings.isServed, lack: { Spoken.lack($0, beside: $1) },
            read: { Spoken.read($0) })
    }

    private static func kind<Hosted: HostedService>(_: Hosted.Type) -> Vocabulary.ServiceKind {
        Vocabulary.ServiceKind(word: Hosted.word, keys: Hosted.keys) { Hosted.read($0) }
    }

    private var sandboxText: String {
        "apps:\n  sandbox:\n"
            + services.map { hosted in
                hosted.sandboxKeys.reduce("    \(hosted.word):\n") { $0 + "      \($1)\n" }
            }.joined() + "instances:\n"
            + protocols.filter { $0.section == nil }.map { spoken in
                (["protocol: \(spoken.word)", "apps: [sandbox]"] + spoken.sandboxKeys)
                    .reduce("  \(spoken.word)-main:\n") { $0 + "    \($1)\n" }
            }.joined()
    }
}
