import ArgumentParser

/// `sealbell device marmot`: a phone of Marmot, on the command line, in groups with others like it.
struct DeviceMarmotCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "marmot", abstract: "Plays a phone of Marmot, in groups of such phones.",
        discussion: """
            Groups are played too: whoever knows a group's code is a member. They are for trials, and keep \
            nothing secret as MLS does.
            """,
        subcommands: [
            DeviceJoinMarmotCommand.self, DeviceGroupsMarmotCommand.self, DeviceAskMarmotCommand.self,
            DeviceShareMarmotCommand.self, DeviceTriggerMarmotCommand.self, DeviceListenMarmotCommand.self,
            DeviceOpenMarmotCommand.self, DeviceLeaveMarmotCommand.self
        ])
}
