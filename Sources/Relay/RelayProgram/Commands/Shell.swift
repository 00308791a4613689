#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
package import ArgumentParser
import NIOCore
import Primitives
package import PushModel
import WebClient

/// What a command has around itself: facts, clocks, and the two ways out.
package struct Shell: Sendable {
    /// What instances may speak, and apps may be set up for.
    let hosting: Hosting
    package let facts: ProcessFacts
    package let world: World
    /// Takes one line of the result.
    package let out: @Sendable (String) -> Void
    /// Takes one line for the person at the terminal.
    package let err: @Sendable (String) -> Void
    /// How long an answer of a running relay is waited for.
    var patience = LocalCall.deadline
    /// How long its admin listener may be silent altogether. It answers for its health at once, whatever its
    /// store and the push services do, so that nothing is cut that only takes long.
    var silence = TimeAmount.seconds(5)
    /// What standard input holds, up to so many bytes.
    var input: @Sendable (Int) -> Secret = { _ in Secret([]) }
    /// Asks the person at the terminal for one line; `nil` of it at the end of input. `nil`: no terminal.
    var ask: (@Sendable (String) -> String?)?
    /// Shows one line of progress in the place of the one before, on a terminal alone; an empty one leaves
    /// nothing. `nil`: no terminal.
    var progress: (@Sendable (String) -> Void)?
    /// Whether results are shown with colours: on a terminal alone.
    var isStyled = false

    /// This process: results to standard output, the rest to standard error.
    static func live(_ hosting: Hosting, _ facts: ProcessFacts) -> Shell {
        var shell = Shell(
            hosting: hosting, facts: facts, world: .streaming().sleepingOnLoops(),
            out: { line in
                // A reader that has gone away (a closed pipe) wants no more lines.
                try? writeAll(STDOUT_FILENO, Array((line + "\n").utf8))
            },
            err: { line in
                // As above.
                try? writeAll(STDERR_FILENO, Array((line + "\n").utf8))
            }, input: { readInput(limitBytes: $0) })
        shell.isStyled = Style.isWanted(isTerminal: isatty(STDOUT_FILENO) == 1, facts.environment)
        guard facts.isTerminal else { return shell }
        if isatty(STDIN_FILENO) == 1 {
            shell.ask = { question in
                // As above.
                try? writeAll(STDERR_FILENO, Array(question.utf8))
                return readLine()
            }
        }
        guard facts.environment["TERM"] != "dumb" else { return shell }
        shell.progress = { line in
            // As above. To the line's beginning, and what stands there is wiped.
            try? writeAll(STDERR_FILENO, Array("\r\u{1B}[K\(line)".utf8))
        }
        return shell
    }

    /// The same, without results: for a command that prints one result of its own.
    var silent: Shell {
        Shell(
            hosting: hosting, facts: facts, world: world, out: { _ in }, err: err, patience: patience,
            silence: silence, input: input, ask: ask, progress: progress, isStyled: isStyled)
    }

    /// Reads the configuration.
    func load(_ request: ConfigurationRequest) throws(ConfigurationError) -> RelayConfiguration {
        try ConfigurationLoader.load(request, facts, hosting.vocabulary)
    }
}

/// A command of ours: it is given a shell, and answers how it ended.
package protocol SealbellCommand: AsyncParsableCommand {
    func run(_ shell: Shell) async throws -> Ending
}

/// `--config`, `--state`, `--set`, as every command that needs the configuration takes them.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "The configuration file.",
            discussion: "Else SEALBELL_CONFIG, ./sealbell.yaml, /etc/sealbell/sealbell.yaml.",
            valueName: "file"))
    var file: String?

    @OptionGroup var overrides: ConfigurationOverrideOptions

    func request(isSandbox: Bool = false) -> ConfigurationRequest {
        overrides.request(file, isSandbox: isSandbox)
    }
}

/// `--state`, `--set`; alone for a command that has `--config` to find a running server by.
struct ConfigurationOverrideOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The state directory, whatever the file says.", valueName: "directory"))
    var state: String?

    @Option(
        name: .customLong("set"),
        help: ArgumentHelp(
            "Overrides a value of the file, as in --set log.level=debug. May be repeated.",
            valueName: "path=value"))
    var settings: [String] = []

    func request(_ file: String?, isSandbox: Bool = false) -> ConfigurationRequest {
        ConfigurationRequest(file: file, state: state, settings: settings, isSandbox: isSandbox)
    }
}

/// `--at STATE`: which running server is meant.
struct RunningServerOptions: ParsableArguments {
    @Option(
        name: .customLong("at"),
        help: ArgumentHelp(
            "The state directory of the running server; else the one that the configuration names.",
            valueName: "state"))
    var state: String?

    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "The configuration file that names that directory.",
            discussion: "Else SEALBELL_CONFIG, ./sealbell.yaml, /etc/sealbell/sealbell.yaml.",
            valueName: "file"))
    var file: String?

    /// The run file of the server that serves from there, by default from where `serve` would serve with the
    /// configuration that it would find (docs/guides/operating.md).
    func find(_ shell: Shell) throws(CommandFailure) -> RunFile {
        let directory: String
        var cure = "name its state directory with --at."
        if let state {
            directory = joinPath(shell.facts.workingDirectory, state)
        } else {
            let standard = try standard(shell)
            directory = standard.directory
            if standard.isGuess {
                cure =
                    "and no configuration is here: name it with --config, or the server's state directory "
                    + "with --at."
            }
        }
        let found: RunFile.Found
        do throws(FileFault) {
            found = try RunFile.find(state: directory)
        } catch {
            throw CommandFailure(.unavailable, "\(joinPath(directory, RunFile.name)): \(error.sentence)")
        }
        switch found {
        case .running(let file): return file
        case .stale(let pid):
            throw CommandFailure(
                .unavailable, "The server of \(directory) (process \(pid)) ended without a clean shutdown.")
        case .none:
            throw CommandFailure(.unavailable, "No server serves from \(directory); \(cure)")
        }
    }

    /// - Returns: the directory, and whether neither a configuration nor a variable names it.
    /// - Throws: `CommandFailure` with what is wrong with the configuration, where nothing else names the
    ///   directory.
    private func standard(
        _ shell: Shell
    ) throws(CommandFailure) -> (directory: String, isGuess: Bool) {
        let facts = shell.facts
        let managed = facts.environment["STATE_DIRECTORY"]?.split(separator: ":").first.map(String.init)
        let named = facts.environment["SEALBELL_STATE"] ?? managed
        do throws(ConfigurationError) {
            return (try shell.load(ConfigurationRequest(file: file)).state, false)
        } catch {
            let isAbsent = file == nil && error.faults.contains { $0.code == .noFile }
            guard isAbsent || named != nil && file == nil else {
                throw CommandFailure(
                    .configuration,
                    lines: error.lines + [
                        "Mend this, or name the state directory of the running server with --at."
                    ])
            }
            return (joinPath(facts.workingDirectory, named ?? "sealbell-state"), named == nil)
        }
    }
}
