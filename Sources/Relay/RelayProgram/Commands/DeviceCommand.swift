import ArgumentParser

/// `sealbell device`: plays the device of a protocol, so that an operator can try server and relay without a
/// phone. Protocols bring the commands below it.
struct DeviceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "device", abstract: "Plays a device, to try a server and a relay without a phone.",
        subcommands: Hosting.standard.protocols.flatMap { $0.commands.device })
}
