import ArgumentParser

/// `sealbell keys new session`: makes the keys of a Session push server, and says the public halves.
struct KeysNewSessionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "session",
        abstract: "Makes the onion key of a Session push server.",
        discussion: """
            Prints the public key, which goes into your build of the app. An existing file is never \
            overwritten: apps that hold its public key could not be read any more. With --core also makes \
            the key that storage nodes and oxend know the relay by, and prints its public key on a second \
            line; without, the relay makes it at its first start.
            """)

    @Option(help: ArgumentHelp("The key file.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp(
            "The instance's core key, NAME.core.key in the state directory.", valueName: "file"))
    var core: String?

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let paths = [file, core].compactMap(\.self).map { joinPath(shell.facts.workingDirectory, $0) }
        if Set(paths).count < paths.count {
            throw CommandFailure(.usage, "The two keys need a file each.")
        }
        let keys = try paths.map { try SessionKeyFile.make($0, shell.world) }
        guard json else {
            keys.forEach { shell.out($0) }
            return .done
        }
        var answer = ["public_key": keys[0], "file": paths[0]]
        if keys.count > 1 { (answer["core_public_key"], answer["core_file"]) = (keys[1], paths[1]) }
        shell.out(try jsonText(answer))
        return .done
    }
}
