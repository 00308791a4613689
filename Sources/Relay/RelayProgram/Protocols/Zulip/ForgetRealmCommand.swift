import ArgumentParser
import PushModel
import WireFormats

/// `sealbell forget realm UUID`.
struct ForgetRealmCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm", abstract: "Forgets whose a realm is, and all its devices.",
        discussion: """
            For a realm that an origin holds and should not: whoever reports it next has it, within the hour \
            where that is its own server. Look first with sealbell why realm, and suspend who held it, \
            or it may report it again. Its users' apps register anew.
            """)

    @Argument(help: ArgumentHelp("The realm's UUID.", valueName: "uuid"))
    var realm: String

    @Flag(help: "Yes, this realm and all its devices.")
    var yes = false

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard yes else { throw ValidationError("This cannot be undone; confirm it with --yes.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        try await adminListener.forget(RealmDesk.forgetRealmPath, shell) { json in
            place.write(&json)
            json.member("realm", realm.lowercased())
        }
        return .done
    }
}

/// `sealbell forget device --realm UUID --token-id ID`, or `--device-id N`.
struct ForgetDeviceCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "device", abstract: "Forgets one device registration, as its origin names it.")

    @OptionGroup var device: DeviceOptions
    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        try await adminListener.forget(RealmDesk.forgetDevicePath, shell) { json in
            place.write(&json)
            json.texts(device.members)
        }
        return .done
    }
}

/// A device of a realm, as its server names it.
struct DeviceOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The realm of the registration.", valueName: "uuid"))
    var realm: String

    @Option(
        help: ArgumentHelp("The device's token id, 12 characters of base64 (servers of 12).", valueName: "id")
    )
    var tokenID: String?

    @Option(
        help: ArgumentHelp(
            "The number that the relay gave the device (servers of 11, and after the specification).",
            valueName: "number"))
    var deviceID: String?

    func validate() throws {
        guard (tokenID == nil) != (deviceID == nil) else {
            throw ValidationError("Name the device by --token-id or by --device-id.")
        }
    }

    /// What the relay is asked.
    var members: [(name: String, value: String?)] {
        [("realm", realm.lowercased()), ("token_id", tokenID), ("device_id", deviceID)]
    }
}
