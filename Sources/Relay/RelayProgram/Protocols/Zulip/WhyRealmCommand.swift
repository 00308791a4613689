import ArgumentParser
import WireFormats

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
            RealmDesk.path, query: [("realm", realm.lowercased()), ("instance", place.instance)], shell)
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
