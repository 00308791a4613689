import ArgumentParser
import PushModel
import WireFormats
import ZulipPush

/// `sealbell why realm UUID`: whose a realm is at a running relay.
struct WhyRealmCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "realm",
        abstract: "Says which origin has a realm, and since when; nothing of its users or devices.",
        discussion: """
            Where an origin's upload says that another one has its realm, this tells which. Ends with 1 when \
            no origin has reported the realm.
            """)

    @Argument(help: ArgumentHelp("The realm's UUID, as its server knows it.", valueName: "uuid"))
    var realm: String

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard UUIDText(realm.lowercased()) != nil else {
            throw ValidationError("A realm is a UUID such as 0ec3eedd-6233-4c5e-a000-b9942be3494e.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(
            ZulipDesk.realmPath, query: [("realm", realm.lowercased()), ("instance", place.instance)], shell)
        let holder = answer["holder"].flatMap { $0 == .null ? nil : $0 }
        adminListener.show(answer, shell) { answer in
            holder.map { Self.lines(answer, $0) } ?? ["No origin has reported this realm."]
        }
        return holder == nil ? .failed : .done
    }

    private static func lines(_ answer: JSONValue, _ holder: JSONValue) -> [String] {
        let standing = holder["standing"]?.string ?? ""
        let name = [holder["id"]?.string ?? "", standing, holder["host"]?.string ?? ""]
        let reported = answer["reported"]?.bool == true ? "reported" : "no longer reported"
        return [
            "holder         " + name.filter { !$0.isEmpty }.joined(separator: "  "),
            "realm          \(reported), so since \(PushWay.time(answer["since"]))",
            standing == "active"
                ? "taken          by nobody else, as long as this origin is active"
                : "free           for the next origin that reports it"
        ]
    }
}

/// `sealbell why device --realm UUID --token-id ID`, or `--device-id N`.
struct WhyDeviceCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "device",
        abstract: "Says how a device registration stands, as its origin names it; never its token.",
        discussion: """
            An origin that is told that a device is dead was told so because the push service refuses it, \
            because it is not registered, or because another realm has it; this says which. Ends with 1 \
            when no such device is registered.
            """)

    @OptionGroup var device: DeviceOptions
    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        let isNamed =
            device.name.tokenID.map { TokenID($0) != nil }
            ?? (device.name.deviceID.flatMap { CanonicalInteger.read(Array($0.utf8)) } != nil)
        guard UUIDText(device.realm.lowercased()) != nil, isNamed else {
            throw ValidationError(
                "A device is named by its realm, a UUID, and by a token id, 12 characters, or its number.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(
            ZulipDesk.devicePath, query: device.members + [("instance", place.instance)], shell)
        let facts = answer["device"].flatMap { $0 == .null ? nil : $0 }
        adminListener.show(answer, shell) { _ in
            facts.map(Self.lines) ?? ["No such device is registered in this realm."]
        }
        return facts == nil ? .failed : .done
    }

    private static func lines(_ facts: JSONValue) -> [String] {
        func time(_ name: String) -> String { PushWay.time(facts[name]) }
        guard facts["state"]?.string == "live" else {
            return [
                "expired        its push service refuses it since \(time("expired"))",
                "comes back     with a registration that the phone makes after that",
                "collected      \(time("ends"))"
            ]
        }
        let app = facts["app"]?.string.map { ", \($0)" } ?? ""
        return [
            "live           \(facts["kind"]?.string ?? "")\(app)",
            "registered     last \(time("registered"))",
            "ends           \(time("ends")), unless it registers again"
        ]
    }
}

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
        try await adminListener.forget(ZulipDesk.forgetRealmPath, shell) { json in
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
        try await adminListener.forget(ZulipDesk.forgetDevicePath, shell) { json in
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

    @OptionGroup var name: DeviceNameOptions

    func validate() throws {
        guard name.isOne else {
            throw ValidationError("Name the device by --token-id or by --device-id.")
        }
    }

    /// What the relay is asked.
    var members: [(name: String, value: String?)] {
        [("realm", realm.lowercased()), ("token_id", name.tokenID), ("device_id", name.deviceID)]
    }
}
