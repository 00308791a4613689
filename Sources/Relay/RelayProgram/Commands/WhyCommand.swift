import ArgumentParser
import PushModel
import WireFormats

/// `sealbell why`: what a running relay knows of one push, or of one realm.
struct WhyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Shows what happened to one push or to a device's pushes, or which origin has a realm.",
        subcommands: subcommands(.standard), defaultSubcommand: WhyPushCommand.self)

    static func subcommands(_ hosting: Hosting) -> [any ParsableCommand.Type] {
        [WhyPushCommand.self] + hosting.protocols.flatMap { $0.commands.why }
    }
}

/// `sealbell why REFERENCE`: the way of one push through a running relay; and what became of the pushes of a
/// registration, by what an operator has of it.
struct WhyPushCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Says what became of one push: lane, attempts, answers; never its content or its token.",
        discussion: """
            The reference is the push's id: the apns-id that Apple's console shows, or what test-push \
            printed. The relay knows the pushes it owes, and the latest answers since it started, and says \
            what it does not know. Ends with 1 when it knows nothing of the push.

            With a name of a registration in place of the reference, it says how that stands, and what \
            became of its pushes within the last week: so many in an hour or a day, with the push service's \
            word, and never their content. What the running relay has counted is part of it.

            For the id of an origin's notification, 32 digits, it follows both queues: the origin's calls \
            to its relay, and the relay's pushes. If the relay is another process, name it with --relay-at.
            """)

    @Argument(
        help: ArgumentHelp(
            "The UUID of the push, or the id of an origin's notification.", valueName: "reference"))
    var reference: String?

    @OptionGroup var registration: RegistrationOptions

    @Option(
        help: ArgumentHelp(
            "The state directory of the relay that an origin calls, if it is another process.",
            valueName: "state"))
    var relayAt: String?

    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard let reference else {
            guard registration.isGiven else {
                throw ValidationError("Name a push by its reference, or a registration by an option.")
            }
            return
        }
        guard !registration.isGiven else {
            throw ValidationError("A reference names a push; leave the registration out.")
        }
        // A mistyped reference must not end in a path of its own.
        guard PushID(text: reference.lowercased()) != nil || Self.isNotification(reference) else {
            throw ValidationError(
                "A reference is a UUID such as 019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f, or 32 hex digits.")
        }
    }

    private static func isNotification(_ reference: String) -> Bool {
        reference.utf8.count == 32 && reference.allSatisfy(\.isHexDigit)
    }

    func run(_ shell: Shell) async throws -> Ending {
        guard let reference else { return try await registration.tell(adminListener, shell) }
        if Self.isNotification(reference) {
            return try await WhyNotification(reference.lowercased(), adminListener, relayAt: relayAt)
                .tell(shell)
        }
        let way = try await adminListener.ask(
            WhyDesk.path, query: [("push", reference.lowercased())], shell)
        adminListener.show(way, shell) { PushWay.lines($0) + PushWay.remembered($0) }
        return PushWay.isKnown(way) ? .done : .failed
    }
}
