import PushModel

@testable import RelayProgram

// What `sealbell` hosts, for tests that are about nothing else.

extension Shell {
    init(
        facts: ProcessFacts, world: World, out: @escaping @Sendable (String) -> Void,
        err: @escaping @Sendable (String) -> Void
    ) {
        self.init(hosting: .standard, facts: facts, world: world, out: out, err: err)
    }
}

extension ConfigurationLoader {
    static func load(
        _ request: ConfigurationRequest, _ facts: ProcessFacts, _ hosting: Hosting = .standard
    ) throws(ConfigurationError) -> RelayConfiguration {
        try load(request, facts, hosting.vocabulary)
    }

    static func read(
        _ text: String, file: String?, _ request: ConfigurationRequest, _ facts: ProcessFacts,
        _ hosting: Hosting = .standard
    ) throws(ConfigurationError) -> RelayConfiguration {
        try read(text, file: file, request, facts, hosting.vocabulary)
    }
}
