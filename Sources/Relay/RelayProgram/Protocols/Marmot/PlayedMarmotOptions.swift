import ArgumentParser
import MarmotPush
import PushModel
import Secp256k1Keys
import WebSocket
import WireFormats

/// `--state`, `--relay`, `--ca`, `--group`.
struct PlayedMarmotOptions: ParsableArguments {
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp("The file in which the phone keeps its keys and groups.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp(
            "The Nostr relay through which groups talk, such as wss://relay.example.org.", valueName: "url"))
    var relay: String?

    @Option(
        help: ArgumentHelp(
            "PEM file of the authority to trust instead of the system's, or of the sandbox's that join was "
                + "given.", valueName: "file"))
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "A group's code, or its name, as join prints them; else the only group.", valueName: "code"))
    var group: String?

    func validate() throws {
        guard relay.map({ Self.isRelay($0) }) ?? true else {
            throw ValidationError("--relay: A wss:// address; ws:// only on this machine.")
        }
    }

    static func isRelay(_ url: String) -> Bool {
        // What is no address is none.
        guard let address = try? WebSocketAddress(url) else { return false }
        return address.isSecure || address.isLoopback
    }

    func path(_ shell: Shell) -> String { joinPath(shell.facts.workingDirectory, file) }

    /// The phone of the state file at work.
    func talk(_ shell: Shell) throws(CommandFailure) -> MarmotTalk {
        var phone = try PlayedMarmot(file: path(shell))
        if let relay { phone.relay = relay }
        return try talk(phone, shell)
    }

    func talk(_ phone: PlayedMarmot, _ shell: Shell) throws(CommandFailure) -> MarmotTalk {
        let authority = ca.map { joinPath(shell.facts.workingDirectory, $0) } ?? phone.authority
        return try MarmotTalk(phone, authority: authority, shell)
    }

    /// The group that is meant.
    func index(_ phone: PlayedMarmot) throws(CommandFailure) -> Int {
        guard !phone.groups.isEmpty else {
            throw CommandFailure(.failed, "The phone is in no group: sealbell device marmot join.")
        }
        guard let group else {
            guard phone.groups.count == 1 else {
                throw CommandFailure(.usage, "The phone is in several groups: give --group.")
            }
            return 0
        }
        let code = group.lowercased()
        let found = phone.groups.firstIndex { known in
            known.name == code || known.pair.secret == (Secret(code.utf8).fromHex ?? Secret([]))
        }
        guard let found else {
            throw CommandFailure(.failed, "The phone is in no group of that code or name.")
        }
        return found
    }

    /// Reads a group, says what is due, and keeps the phone.
    ///
    /// - Returns: what was said.
    func settle(
        _ talk: inout MarmotTalk, _ index: Int, _ shell: Shell
    ) async throws(CommandFailure) -> MarmotTalk.Said {
        for line in try await talk.hear(index, answers: true) { shell.out(line) }
        return try await talk.work(index, ahead: MarmotLimits.answerDelay)
    }
}
