import ArgumentParser

/// `sealbell keys new status`: makes the key of a push notification server, and says the public half.
struct KeysNewStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Makes the key of a Status push notification server.",
        discussion: """
            Prints the public key, which goes into your build of the app. An existing file is never \
            overwritten: devices have registered with the server of its public key, and with no other.
            """)

    @Option(help: ArgumentHelp("The key file.", valueName: "file"))
    var file: String

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try StatusKeyFile.make(file, json: json, shell)
    }
}
