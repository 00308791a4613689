import ArgumentParser
import PushModel
import WireFormats

/// `sealbell forget`: deletes what a running relay remembers of somebody.
struct ForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Deletes an origin, a realm, a device or all records of an address.",
        discussion: """
            Deletes the records in one commit, with the pushes that are owed to their devices; within half \
            a minute their bytes are in no file of the store. Devices and servers can register again: to \
            keep a server out, suspend it instead.
            """,
        subcommands: subcommands(.standard))

    static func subcommands(_ hosting: Hosting) -> [any ParsableCommand.Type] {
        [ForgetOriginCommand.self] + hosting.protocols.flatMap { $0.commands.forget }
            + [ForgetAddressCommand.self]
    }
}

/// `sealbell forget origin HOST|UUID`.
struct ForgetOriginCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "origin",
        abstract: "Forgets an origin with its host name, its realms and all their devices.",
        discussion:
            "This cannot be undone: the origin must sign up again, and its users' apps must register again.")

    @OptionGroup var origin: OriginArgument

    @Flag(help: "Yes, this origin and all its devices.")
    var yes = false

    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard yes else { throw ValidationError("This cannot be undone; confirm it with --yes.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await adminListener.forget(ForgetDesk.originPath, shell, origin.write)
        return .done
    }
}

/// `sealbell forget address`.
struct ForgetAddressCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "address",
        abstract: "Forgets all registrations of one device token, over all origins and instances.",
        discussion: """
            Reads the token from standard input or a file, and looks for it under every bundle id of the \
            configuration. Ends with 1 when it found nothing.
            """)

    @Option(
        help: ArgumentHelp(
            "The file that holds the device token.", discussion: "Else it is read from standard input.",
            valueName: "file"))
    var device: String?

    @Option(help: ArgumentHelp("One more bundle id, which no app has any more.", valueName: "id"))
    var appID: String?

    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let token = try readAddress(device, shell)
        let count = try await adminListener.forget(ForgetDesk.addressPath, shell) { json in
            json.member("address", utf8: token)
            guard let appID else { return }
            json.member("app_id", appID)
        }
        return count > 0 ? .done : .failed
    }
}
