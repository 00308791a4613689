import PushModel

/// One thing wrong with the configuration: where, and what to do. It never repeats a value, which might be a
/// secret that slipped into the wrong line.
struct ConfigurationFault: PushError, Hashable {
    enum Code: String, Sendable, Hashable, CaseIterable {
        case noFile, unreadableFile, fileTooLarge, notYAML, duplicateKey
        case unknownKey, missingKey, wrongShape, badName, badValue, outOfBounds, notBuiltYet
        case unknownReference, conflict, badOverride, tooLarge
        case badFile, needsRestart
    }

    enum Source: Sendable, Hashable {
        /// Line of the file, from 1; 0 when the fault is of the file as a whole.
        case file(line: Int)
        /// A default of ours.
        case builtIn
        /// `--set`, `--state` and their like.
        case commandLine
        /// That variable.
        case environment(String)

        var isFile: Bool { if case .file = self { true } else { false } }
    }

    let code: Code
    /// `apps.acme-chat.fallback.title`; empty for the file as a whole.
    let path: String
    let source: Source
    let sentence: String

    var codeText: String { code.rawValue }
    var line: Int? {
        if case .file(let line) = source, line > 0 { return line }
        return nil
    }
}

/// All faults found in one reading, at most ``limit`` of them told.
struct ConfigurationError: PushError, Hashable {
    /// A page of faults is all that a person mends in one go.
    static let limit = 50

    /// In the file's order; at least one.
    let faults: [ConfigurationFault]
    /// Found beyond the limit.
    let untold: Int
    /// The file that was read; `nil` when there was none.
    var file: String?

    init(_ faults: [ConfigurationFault]) {
        self.faults = Array(faults.prefix(Self.limit))
        untold = max(0, faults.count - Self.limit)
    }

    var codeText: String { "configuration" }
    var sentence: String {
        faults.count == 1
            ? "The configuration has a fault." : "The configuration has \(faults.count + untold) faults."
    }

    /// One line for each fault: `FILE:LINE: PATH: SENTENCE [CODE]`.
    var lines: [String] {
        var lines = faults.map { fault in
            let place = fault.source.words { line in
                line > 0 ? "\(file ?? "configuration"):\(line)" : file ?? "configuration"
            }
            let path = fault.path.isEmpty ? "" : "\(fault.path): "
            return "\(place): \(path)\(fault.sentence) [\(fault.codeText)]"
        }
        if untold > 0 { lines.append("and \(untold) more") }
        return lines
    }
}

extension ConfigurationFault.Source {
    /// Where a value came from, for a person.
    ///
    /// - Parameter inFile: what to call a line of the file.
    func words(inFile: (Int) -> String) -> String {
        switch self {
        case .file(let line): inFile(line)
        case .builtIn: "default"
        case .commandLine: "command line"
        case .environment(let name): name
        }
    }

    /// - Parameter file: the configuration's; `nil`: it is the built-in sandbox's.
    func place(_ file: String?) -> String { words { "\(file ?? "built-in sandbox"):\($0)" } }
}
