import PushModel
import PushTesting
import Simulators
import WebClient

@testable import RelayProgram

/// What a command line came to.
struct CommandRun: Sendable {
    let status: Ending
    let out: [String]
    let err: [String]
    /// Both, in the order in which they were said.
    let lines: [String]

    var all: String { (out + err).joined(separator: "\n") }

    /// Runs a command line in a folder.
    ///
    /// - Parameter input: standard input.
    /// - Parameter home: of the user whose command line it is.
    static func of(
        _ words: [String], in folder: String, home: String? = "/users/ada", input: String = ""
    ) async -> CommandRun {
        let (out, err, lines) = (Lines(), Lines(), Lines())
        var facts = facts(home: home)
        facts.workingDirectory = folder
        var shell = Shell(
            facts: facts, world: .live,
            out: { line in
                out.add(line)
                lines.add(line)
            },
            err: { line in
                err.add(line)
                lines.add(line)
            })
        shell.waitPatiently()
        shell.input = { limit in Secret(Array(input.utf8.prefix(limit))) }
        let status = await Sealbell.run(words, shell)
        return CommandRun(status: status, out: out.all, err: err.all, lines: lines.all)
    }
}

extension RunningRelay {
    /// Writes what a relay between simulators says of itself into its state directory.
    ///
    /// - Returns: that directory.
    func sandboxFile() throws -> String {
        let configuration = try stage.configuration()
        try RunFile(
            urls: urls.merging(Server.urls(of: stage.sandbox)) { $1 }, ca: nil,
            publicKeys: relay.publicKeys, apps: configuration.bundles,
            protocols: Hosting.standard.words(of: configuration.instances)
        ).write(state: stage.state)
        return stage.state
    }
}

/// Somebody who plays a party of a protocol by `sealbell device`, in a folder of their own.
struct CommandPerson {
    let folder: TemporaryFolder
    private let name: String
    private let file: String
    private let more: [String]

    /// - Parameter name: the protocol, as the command names it.
    /// - Parameter file: where the party is kept.
    /// - Parameter more: options behind each of its command lines.
    init(_ name: String, _ file: String = "phone.json", _ more: [String] = []) throws {
        (self.name, self.file, self.more) = (name, file, more)
        folder = try TemporaryFolder()
    }

    var state: String { folder.path + "/" + file }

    func put(_ text: String, at name: String) throws {
        try writeFile(folder.path + "/" + name, Array(text.utf8), replacing: true)
    }

    func run(_ words: String..., arguments: [String] = [], input: String = "") async -> CommandRun {
        await run(words + arguments, input: input)
    }

    func run(_ words: [String], input: String) async -> CommandRun {
        await .of(["device", name] + words + ["--state", file] + more, in: folder.path, input: input)
    }
}
