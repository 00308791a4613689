import PushModel

/// How the process ends (docs/guides/operating.md).
package enum Ending: Sendable, Hashable, CaseIterable {
    /// Also after a drained SIGTERM.
    case done
    /// What was asked failed.
    case failed
    case usage
    /// A peer cannot be reached or a port is taken.
    case unavailable
    /// Our bug.
    case software
    case configuration

    /// The number that the shell sees; `sysexits.h` where it has one.
    var code: Int32 {
        switch self {
        case .done: 0
        case .failed: 1
        case .usage: 64
        case .unavailable: 69
        case .software: 70
        case .configuration: 78
        }
    }
}

extension PushError {
    /// The sentence with its code behind it, as an operator reads it and finds it in docs/errors.md.
    var coded: String { "\(sentence) [\(codeText)]" }
}

/// A command could not do what was asked. The lines go to standard error as they are: they hold our own
/// words, configured names and paths that the operator gave, nothing that a peer sent.
package struct CommandFailure: Error, Sendable {
    let status: Ending
    let lines: [String]

    package init(_ status: Ending, _ lines: String...) {
        self.status = status
        self.lines = lines
    }

    init(_ status: Ending, lines: [String]) {
        self.status = status
        self.lines = lines
    }
}
