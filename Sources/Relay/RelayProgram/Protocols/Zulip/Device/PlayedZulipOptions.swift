import ArgumentParser
import ZulipPush

/// `--state`, `--ca`.
struct PlayedZulipPlace: ParsableArguments {
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp("The file in which the phone keeps accounts and keys.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp("PEM file of an authority to trust beside the system's.", valueName: "file"))
    var ca: String?

    func path(_ shell: Shell) -> String { joinPath(shell.facts.workingDirectory, file) }

    /// The phone of the state file at work.
    func phone(_ shell: Shell) throws(CommandFailure) -> ZulipPhone {
        try phone(try PlayedZulip(file: path(shell)), shell)
    }

    func phone(_ played: PlayedZulip, _ shell: Shell) throws(CommandFailure) -> ZulipPhone {
        try ZulipPhone(played, try wire(shell), shell)
    }

    func wire(_ shell: Shell) throws(CommandFailure) -> KitWire {
        // Else every call would fail, and none would say why.
        _ = try shell.content(of: ca)
        return KitWire(beside: ca, shell)
    }

    /// What to type next.
    func next(_ words: String, _ shell: Shell) {
        shell.out("next: sealbell device zulip \(words) --state \(file)" + (ca.map { " --ca \($0)" } ?? ""))
    }
}

/// `--state`, `--ca`, `--user`.
struct PlayedZulipOptions: ParsableArguments {
    @OptionGroup var place: PlayedZulipPlace

    @Option(help: ArgumentHelp("The account, where the phone has several.", valueName: "name"))
    var user: String?

    /// The account that is meant.
    func index(_ played: PlayedZulip) throws(CommandFailure) -> Int {
        let found = try indices(played)
        guard found.count == 1 else {
            throw CommandFailure(.usage, "The phone has several accounts: give --user.")
        }
        return found[0]
    }

    /// The account that is named, or all.
    func indices(_ played: PlayedZulip) throws(CommandFailure) -> [Int] {
        let found = played.accounts.indices.filter { user == nil || played.accounts[$0].user == user }
        guard !found.isEmpty else { throw CommandFailure(.failed, "The phone has no account of that name.") }
        return found
    }

    /// Starts an account that is registered, and fails for one that is not.
    func begin(_ phone: ZulipPhone, _ index: Int, _ shell: Shell) async throws(CommandFailure) {
        let account = await phone.played.accounts[index]
        guard !account.isForgotten else {
            throw CommandFailure(
                .failed,
                "This account is forgotten at its server: sealbell device zulip join \(account.url) --user "
                    + "\(account.user) --state \(place.file)")
        }
        try await phone.start(index)
    }
}

extension DeviceStatus {
    /// How a command ends that wanted it to be active.
    func ending() -> Ending {
        if state == .active { return .done }
        switch advice {
        case .none, .wait, .retrying: return .unavailable
        case .giveToken, .updateApp, .logInAgain, .tellAdmin, .unsupported: return .failed
        }
    }
}
