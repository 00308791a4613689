import ArgumentParser
import WireFormats
import ZulipPush

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
            device.tokenID.map { TokenID($0) != nil }
            ?? (device.deviceID.flatMap { CanonicalInteger.read(Array($0.utf8)) } != nil)
        guard UUIDText(device.realm.lowercased()) != nil, isNamed else {
            throw ValidationError(
                "A device is named by its realm, a UUID, and by a token id, 12 characters, or its number.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.ask(
            RealmDesk.devicePath, query: device.members + [("instance", place.instance)], shell)
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
