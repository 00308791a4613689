package import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel

/// The commands of `sealbell`.
struct Sealbell: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sealbell",
        abstract: "A push relay that cannot read what it delivers.",
        version: Release.version,
        subcommands: [
            ServeCommand.self, SandboxCommand.self, DemoCommand.self, ConfigCommand.self, DoctorCommand.self,
            RelayStatusCommand.self, KeysCommand.self, StoreCommand.self, OriginsCommand.self,
            OriginCommand.self, TestPushCommand.self, WhyCommand.self, ForgetCommand.self, DeviceCommand.self,
            ReloadCommand.self, VersionCommand.self
        ])

    /// Runs one command line.
    static func run(_ arguments: [String], _ shell: Shell) async -> Ending {
        await EntryPoint.run(Sealbell.self, arguments, shell)
    }
}

/// The entry point: the one place that looks at the environment, starts a command, and ends the process.
package enum EntryPoint {
    /// The program `sealbell`.
    package static func sealbell() async -> Never { await main(Sealbell.self) }

    /// A program whose commands stand below `root`.
    package static func main<Root: AsyncParsableCommand>(_ root: Root.Type) async -> Never {
        openStandardStreams()
        letSignalsThrough()
        exit(await run(root, Array(CommandLine.arguments.dropFirst()), .live(.standard, .current())).code)
    }

    /// Parses and runs one command line. Every error ends here, as a status and lines of our own.
    package static func run<Root: AsyncParsableCommand>(
        _ root: Root.Type, _ arguments: [String], _ shell: Shell
    ) async -> Ending {
        do {
            var command = try Root.parseAsRoot(arguments)
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
            return parseFailure(root, error, arguments, shell)
        }
    }

    /// Help and version are answers; a wrong command line is a usage error; all else is a bug of ours, of
    /// which nothing foreign is repeated.
    private static func parseFailure<Root: AsyncParsableCommand>(
        _ root: Root.Type, _ error: any Error, _ arguments: [String], _ shell: Shell
    ) -> Ending {
        let code = Root.exitCode(for: error)
        if code == .success {
            shell.out(Root.fullMessage(for: error))
            return .done
        }
        if code == .validationFailure {
            shell.err(Root.fullMessage(for: error))
            if let meant = CommandWords.meant(arguments, below: root) {
                shell.err("Did you mean \(meant)?")
            }
            return .usage
        }
        shell.err("The program stopped with an unexpected error; please report it with the command you ran.")
        return .software
    }
}

/// The words that name a command.
enum CommandWords {
    /// What a mistyped command most likely meant, as one would type it: `sealbell origins list`.
    ///
    /// Looks at the first word alone that names no command of its group: behind a command stand its own
    /// arguments, which are never repeated.
    static func meant(_ arguments: [String], below root: any ParsableCommand.Type) -> String? {
        var group = root
        var path = [root.configuration.commandName ?? ""]
        // Ends: each word goes one group down.
        for word in arguments {
            let below = group.configuration.subcommands
            if let next = below.first(where: { $0.configuration.commandName == word }) {
                group = next
                path.append(word)
                continue
            }
            let names = below.compactMap { $0.configuration.commandName }
            // With a default command the word may be its argument.
            guard group.configuration.defaultSubcommand == nil, !word.hasPrefix("-"),
                let near = nearest(word, among: names)
            else { return nil }
            return (path + [near]).joined(separator: " ")
        }
        return nil
    }
}

/// `sealbell version`: what a report of a fault needs. `--version` says the first line alone.
struct VersionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "version", abstract: "Says the version, the commit and the build.")

    func run(_ shell: Shell) async throws -> Ending {
        shell.out(Release.version)
        shell.out("commit \(Release.commit ?? "unknown: SEALBELL_COMMIT was not set in its build")")
        shell.out("build \(Release.build), \(Release.processor)")
        return .done
    }
}
