import ArgumentParser
import AtRest
import PushModel

/// `sealbell keys`.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Makes, lists and exchanges keys.", subcommands: subcommands(.standard)
    )

    static func subcommands(_ hosting: Hosting) -> [any ParsableCommand.Type] {
        [KeysNewCommand.self, KeysListCommand.self, KeysRotateStorageCommand.self]
            + hosting.protocols.flatMap { $0.commands.keyring }
    }
}

/// `sealbell keys new`.
struct KeysNewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Makes a key.", subcommands: subcommands(.standard))

    static func subcommands(_ hosting: Hosting) -> [any ParsableCommand.Type] {
        hosting.protocols.flatMap { $0.commands.keys } + [KeysNewStorageCommand.self]
    }
}

/// `sealbell keys new storage`: makes the key file that seals the store, before the first start.
struct KeysNewStorageCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage",
        abstract: "Makes the key file that seals the store.",
        discussion: """
            The relay makes one itself at its first start; make it beforehand to back it up or to give it \
            to a service manager. An existing file is never overwritten: without it the store would be lost.
            """)

    @Option(help: ArgumentHelp("The key file, instead of the one of the configuration.", valueName: "file"))
    var file: String?

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let path: String
        if let file {
            path = joinPath(shell.facts.workingDirectory, file)
        } else {
            path = try shell.load(options.request()).store.keysFile
        }
        do throws(FileFault) { try makeFolder(folder(of: path)) } catch {
            throw CommandFailure(.failed, "\(folder(of: path)): \(error.sentence)")
        }
        do throws(KeyFileError) { _ = try KeyFile.create(path, shell.world) } catch {
            throw CommandFailure(.failed, "\(path): \(error.coded)")
        }
        shell.out(json ? try jsonText(["file": path]) : path)
        return .done
    }
}
