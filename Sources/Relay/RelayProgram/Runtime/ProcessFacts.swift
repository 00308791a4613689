#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// The process's environment. Read once, in the entry point, and passed down from there, so that nothing else
/// reads the environment.
package struct ProcessFacts: Sendable {
    package var environment: [String: String]
    var isRoot: Bool
    /// The home directory, absolute; `nil` for a user without one.
    var home: String?
    /// Whether standard error is a terminal.
    var isTerminal: Bool
    /// Absolute.
    package var workingDirectory: String
    package var processID: Int32

    /// The facts of this very process.
    static func current() -> ProcessFacts {
        let environment = ProcessInfo.processInfo.environment
        return ProcessFacts(
            environment: environment,
            isRoot: geteuid() == 0,
            home: environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil },
            isTerminal: isatty(STDERR_FILENO) == 1,
            workingDirectory: FileManager.default.currentDirectoryPath,
            processID: getpid())
    }
}
