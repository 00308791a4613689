import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// The entry point: the one place that looks at the environment, starts the command, and ends the process.
@main
struct Sealbell: AsyncParsableCommand {
    static let release = NoteCode("0.1.0")
    static let version = release.text

    static let configuration = CommandConfiguration(
        commandName: "sealbell",
        abstract: "A push relay that cannot read what it delivers.",
        version: version,
        subcommands: [
            ServeCommand.self, SandboxCommand.self, DemoCommand.self, BenchCommand.self, ConfigCommand.self,
            DoctorCommand.self,
            KeysCommand.self, StoreCommand.self, OriginsCommand.self, TestPushCommand.self, WhyCommand.self,
            ForgetCommand.self,
            ReloadCommand.self, VersionCommand.self
        ])

    static func main() async {
        letSignalsThrough()
        let shell = Shell.live(.current())
        end(await run(Array(CommandLine.arguments.dropFirst()), shell))
    }

    /// Parses and runs one command line. Every error ends here, as a status and lines of our own.
    static func run(_ arguments: [String], _ shell: Shell) async -> Ending {
        do {
            var command = try parseAsRoot(arguments)
            if let ours = command as? any SealbellCommand { return try await ours.run(shell) }
            // What is left are groups of commands, which say what they hold.
            try command.run()
            return .done
        } catch let error as ConfigurationError {
            error.lines.forEach(shell.err)
            return .configuration
        } catch let failure as CommandFailure {
            failure.lines.forEach(shell.err)
            return failure.status
        } catch {
            return parseFailure(error, shell)
        }
    }

    /// Help and version are answers; a wrong command line is a usage error; all else is a bug of ours, of
    /// which nothing foreign is repeated.
    private static func parseFailure(_ error: any Error, _ shell: Shell) -> Ending {
        let code = exitCode(for: error)
        if code == .success {
            shell.out(fullMessage(for: error))
            return .done
        }
        if code == .validationFailure {
            shell.err(fullMessage(for: error))
            return .usage
        }
        shell.err("sealbell ended over an error it did not expect; please report it with what you asked for.")
        return .software
    }
}

/// Ends the process. Outside the command, whose own `exit` means something else.
private func end(_ status: Ending) -> Never { exit(status.code) }

/// `sealbell version`.
struct VersionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(commandName: "version", abstract: "Says the version.")

    func run(_ shell: Shell) async throws -> Ending {
        shell.out(Sealbell.version)
        return .done
    }
}
