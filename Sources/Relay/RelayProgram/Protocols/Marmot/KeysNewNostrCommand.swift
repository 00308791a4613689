import ArgumentParser

/// `sealbell keys new nostr`: makes the key of a notification server, and says the public half.
struct KeysNewNostrCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "nostr",
        abstract: "Makes the key of a Marmot notification server.",
        discussion: """
            Prints the public key, which goes into your build of the app. An existing file is never \
            overwritten: tokens that were encrypted to it could not be opened any more.
            """)

    @Option(help: ArgumentHelp("The key file.", valueName: "file"))
    var file: String

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        try NostrKeyFile.make(file, json: json, shell)
    }
}
