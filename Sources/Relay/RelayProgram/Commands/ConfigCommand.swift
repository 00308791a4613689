import ArgumentParser

/// `sealbell config`.
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Makes, checks and shows the configuration.",
        subcommands: [ConfigInitCommand.self, ConfigCheckCommand.self, ConfigShowCommand.self])
}
