import ArgumentParser
import PushModel
import WireFormats

/// `sealbell why`: what a running relay knows of one push, or of one realm.
struct WhyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why", abstract: "Shows what happened to one push, or which origin has a realm.",
        subcommands: subcommands(.standard), defaultSubcommand: WhyPushCommand.self)

    static func subcommands(_ hosting: Hosting) -> [any ParsableCommand.Type] {
        [WhyPushCommand.self] + hosting.protocols.flatMap { $0.commands.why }
    }
}

/// `sealbell why REFERENCE`: the way of one push through a running relay.
struct WhyPushCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Says what became of one push: lane, attempts, answers; never its content or its token.",
        discussion: """
            The reference is the push's id: the apns-id that Apple's console shows, or what test-push \
            printed. The relay knows the pushes it owes, and the latest answers since it started; what it \
            does not know it says. Ends with 1 when it knows nothing of the push.
            """)

    @Argument(help: ArgumentHelp("The UUID of the push.", valueName: "reference"))
    var reference: String

    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        // A mistyped reference must not end in a path of its own.
        guard PushID(text: reference.lowercased()) != nil else {
            throw ValidationError("A reference is a UUID such as 019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let way = try await adminListener.ask("\(WhyDesk.path)?push=\(reference.lowercased())", shell)
        let answers = way["answers"]?.array ?? []
        let owed = way["owed"].flatMap { $0 == .null ? nil : $0 }
        if adminListener.json {
            shell.out(String(decoding: way.serialized(), as: UTF8.self))
        } else {
            Self.lines(way, answers, owed).forEach(shell.out)
        }
        return answers.isEmpty && owed == nil ? .failed : .done
    }

    private static func lines(_ way: JSONValue, _ answers: [JSONValue], _ owed: JSONValue?) -> [String] {
        var lines: [String] = []
        if !answers.isEmpty || owed != nil { lines.append("accepted       \(time(way["accepted_at"]))") }
        for answer in answers {
            let words = [
                "answered", time(answer["answered_at"]), answer["lane"]?.string ?? "",
                "attempt \(answer["number"]?.int64 ?? 0):", answer["outcome"]?.string ?? "",
                "(\(answer["reason"]?.string ?? "")),", next(answer)
            ]
            lines.append("\(words[0])       " + words[1...].joined(separator: " "))
        }
        if let owed {
            let place = owed["place"]?.string == "store" ? "it waits in the store" : "it is in memory"
            lines.append(
                "owed           by \(owed["lane"]?.string ?? ""), \(owed["class"]?.string ?? ""), "
                    + "\(owed["attempts"]?.int64 ?? 0) attempts counted, \(place), "
                    + "not sent before \(time(owed["not_before"])), until \(time(owed["custody_ends"]))")
        } else if answers.last?["next"]?.string == "ended" {
            lines.append("ended          nothing is owed any more")
        }
        return lines + unknown(way, answers, owed)
    }

    private static func next(_ answer: JSONValue) -> String {
        switch answer["next"]?.string {
        case "again"?: "again at \(time(answer["not_before"])) or later"
        case "waits"?: "waits until the lane's credential works"
        case "elsewhere"?: "goes on in the other environment"
        default: "ended"
        }
    }

    /// What cannot be said, and why.
    private static func unknown(
        _ way: JSONValue, _ answers: [JSONValue], _ owed: JSONValue?
    ) -> [String] {
        var lines: [String] = []
        if answers.isEmpty, owed == nil {
            lines.append(
                "unknown        it is not owed, and no answer for it is remembered: it ended before what is "
                    + "remembered, grew too old unsent, or was another relay's")
        }
        lines.append("remembered     answers since the relay's start at \(time(way["running_since"]))")
        if let since = way["faults_since"], since != .null {
            lines.append("               of those that were no acceptance, the ones since \(time(since))")
        }
        if let since = way["acceptances_since"], since != .null {
            lines.append("               of acceptances, the ones since \(time(since))")
        }
        return lines
    }

    private static func time(_ value: JSONValue?) -> String {
        value?.int64.map { timestamp(UnixTime(milliseconds: $0)) } ?? "?"
    }
}
