import ArgumentParser
import PushModel
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
        let instance = place.instance.map { "&instance=\($0)" } ?? ""
        let answer = try await adminListener.ask(
            "\(RealmDesk.path)?realm=\(realm.lowercased())\(instance)", shell)
        let holder = answer["holder"].flatMap { $0 == .null ? nil : $0 }
        if adminListener.json {
            shell.out(String(decoding: answer.serialized(), as: UTF8.self))
        } else if let holder {
            Self.lines(answer, holder).forEach(shell.out)
        } else {
            shell.out("No origin has reported this realm.")
        }
        return holder == nil ? .failed : .done
    }

    private static func lines(_ answer: JSONValue, _ holder: JSONValue) -> [String] {
        let standing = holder["standing"]?.string ?? ""
        let name = [holder["id"]?.string ?? "", standing, holder["host"]?.string ?? ""]
        let since = answer["since"]?.int64.map { timestamp(UnixTime(milliseconds: $0)) } ?? "?"
        let isReported = answer["reported"]?.bool == true
        return [
            "holder         " + name.filter { !$0.isEmpty }.joined(separator: "  "),
            "realm          \(isReported ? "reported" : "no longer reported"), so since \(since)",
            standing == "active"
                ? "taken          by nobody else, as long as this origin is active"
                : "free           for the next origin that reports it"
        ]
    }
}
