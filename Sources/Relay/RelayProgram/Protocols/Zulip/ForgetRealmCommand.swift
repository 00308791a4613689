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
        let answer = try await adminListener.ask(RealmDesk.forgetRealmPath, shell) { json in
            place.write(&json)
            json.key("realm")
            json.string(realm.lowercased())
        }
        _ = ForgetReport.tell(answer, adminListener, shell)
        return .done
    }
}

/// `sealbell forget device --realm UUID --token-id ID`.
struct ForgetDeviceCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "device", abstract: "Forgets one device registration, as its origin names it.")

    @Option(help: ArgumentHelp("The realm of the registration.", valueName: "uuid"))
    var realm: String

    @Option(help: ArgumentHelp("The device's token id, 12 characters of base64.", valueName: "id"))
    var tokenID: String

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(RealmDesk.forgetDevicePath, shell) { json in
            place.write(&json)
            json.key("realm")
            json.string(realm)
            json.key("token_id")
            json.string(tokenID)
        }
        _ = ForgetReport.tell(answer, adminListener, shell)
        return .done
    }
}
