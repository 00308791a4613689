import ArgumentParser

/// `sealbell device zulip`: a phone with accounts at Zulip servers, on the command line.
struct DeviceZulipCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "zulip", abstract: "Plays a phone with accounts at Zulip servers.",
        discussion: """
            The state file holds API keys and the keys that open notifications. Beside it, under the same \
            name with .marker at its end, stands what says that it is this phone's: leave that out of \
            backups, as an app does.
            """,
        subcommands: [
            DeviceJoinZulipCommand.self, DeviceStatusZulipCommand.self, DeviceListenZulipCommand.self,
            DeviceOpenZulipCommand.self, DeviceRepeatZulipCommand.self, DeviceTokenZulipCommand.self,
            DeviceForgetZulipCommand.self, DeviceRestoreZulipCommand.self, DeviceLeaveZulipCommand.self
        ])
}
