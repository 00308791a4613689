import Foundation

/// What the command line says about the configuration.
struct ConfigurationRequest: Sendable, Hashable {
    /// `--config`.
    var file: String?
    /// `--state`.
    var state: String?
    /// `--set`, in order.
    var settings: [String] = []
    /// `--sandbox`.
    var isSandbox = false
    /// Instead of any file: a configuration that a command makes.
    var text: String?
}

/// Finds the file, reads it, puts the overrides above it, and settles the state directory.
enum ConfigurationLoader {
    /// Where a file is looked for when none is named.
    static let standardFiles = ["sealbell.yaml", "/etc/sealbell/sealbell.yaml"]

    /// - Throws: every fault found, at once.
    static func load(
        _ request: ConfigurationRequest, _ facts: ProcessFacts, _ vocabulary: Vocabulary,
        into record: ConfigurationRecord? = nil
    ) throws(ConfigurationError) -> RelayConfiguration {
        if let text = request.text { return try read(text, file: nil, request, facts, vocabulary, record) }
        guard let file = file(request, facts) else {
            guard request.isSandbox else {
                throw ConfigurationError([
                    ConfigurationFault(
                        code: .noFile, path: "", source: .commandLine,
                        sentence: "There is no configuration: name one with --config, or try serve --sandbox."
                    )
                ])
            }
            return try read(vocabulary.sandbox, file: nil, request, facts, vocabulary, record)
        }
        do throws(ConfigurationError) {
            return try read(text(of: file), file: file, request, facts, vocabulary, record)
        } catch {
            var named = error
            named.file = file
            throw named
        }
    }

    /// Makes a configuration of a text. `file` is what messages call it, and its folder is where relative
    /// paths start; without one they start in `sandbox/` of the state directory.
    static func read(
        _ text: String, file: String?, _ request: ConfigurationRequest, _ facts: ProcessFacts,
        _ vocabulary: Vocabulary, _ record: ConfigurationRecord? = nil
    ) throws(ConfigurationError) -> RelayConfiguration {
        var root = try YAMLReader.read(text)
        let context = ReadingContext(
            fileDirectory: file.map { folder(of: $0) } ?? facts.workingDirectory,
            workingDirectory: facts.workingDirectory,
            isSandbox: request.isSandbox)
        context.record = record
        if case .null = root.value { root.value = .mapping([]) }
        context.warnings = Overrides.apply(
            to: &root, environment: facts.environment, settings: request.settings, faults: &context.faults)
        let state = state(root, request, facts, context)
        record?.note(
            ConfigurationPath(["state"]), state,
            request.state == nil ? root["state"]?.source ?? .builtIn : .commandLine)
        if file == nil { context.fileDirectory = joinPath(state, "sandbox") }
        return try ConfigurationReader(root, context, facts, vocabulary).read(state: state, file: file)
    }

    /// `--state`, else `SEALBELL_STATE` (which the overrides put into the tree), else `state:`, else
    /// `$STATE_DIRECTORY`, else `./sealbell-state` (docs/guides/operating.md).
    private static func state(
        _ root: ConfigurationNode, _ request: ConfigurationRequest, _ facts: ProcessFacts,
        _ context: ReadingContext
    ) -> String {
        if let given = request.state { return joinPath(facts.workingDirectory, given) }
        if let node = root["state"] {
            if case .scalar(let text) = node.value, !text.isEmpty {
                return context.absolute(text, from: node.source)
            }
            context.fault(
                .wrongShape, ConfigurationPath(["state"]), node.source, "Here a directory's path is expected."
            )
        }
        // The service manager may name several directories; the first is the one for us.
        let managed = facts.environment["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        return joinPath(facts.workingDirectory, managed ?? "sealbell-state")
    }

    /// `--config`, else `SEALBELL_CONFIG`, else a standard place, but not in the sandbox, which must not
    /// happen to pick up real credentials.
    private static func file(_ request: ConfigurationRequest, _ facts: ProcessFacts) -> String? {
        if let named = request.file ?? facts.environment["SEALBELL_CONFIG"], !named.isEmpty {
            return joinPath(facts.workingDirectory, named)
        }
        guard !request.isSandbox else { return nil }
        return standardFiles.map { joinPath(facts.workingDirectory, $0) }
            .first { FileManager.default.fileExists(atPath: $0) }
    }

    private static func text(of file: String) throws(ConfigurationError) -> String {
        let fault: ConfigurationFault
        do throws(FileFault) {
            let bytes = try readFile(file, limitBytes: YAMLReader.limitBytes)
            if let text = String(validating: bytes, as: UTF8.self) { return text }
            fault = ConfigurationFault(
                code: .notYAML, path: "", source: .file(line: 0),
                sentence: "The file holds bytes that are no UTF-8 text.")
        } catch {
            fault = ConfigurationFault(
                code: error == .tooLarge ? .fileTooLarge : error == .missing ? .noFile : .unreadableFile,
                path: "",
                source: .file(line: 0), sentence: error.sentence)
        }
        throw ConfigurationError([fault])
    }
}
