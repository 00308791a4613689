import PushModel
import PushTesting
import WebClient
import WireFormats

@testable import RelayProgram

/// An operator beside a running relay.
struct Operator: Sendable {
    let relay: RunningRelay

    init(_ relay: RunningRelay) throws {
        self.relay = relay
        try RunFile(urls: relay.urls, ca: nil, publicKeys: relay.relay.publicKeys, apps: [:])
            .write(state: relay.stage.state)
    }

    /// Runs a command line; `input` is its standard input.
    func run(
        _ arguments: String..., input: String = ""
    ) async -> (status: Ending, out: [String], err: [String]) {
        await run(arguments, input: input)
    }

    func run(
        _ arguments: [String], input: String = ""
    ) async -> (status: Ending, out: [String], err: [String]) {
        let out = Lines()
        let err = Lines()
        var facts = facts()
        facts.workingDirectory = relay.stage.folder.path
        var shell = Shell(facts: facts, world: .live, out: { out.add($0) }, err: { err.add($0) })
        shell.patience = LocalCall.patience
        shell.input = { limit in Secret(Array(input.utf8.prefix(limit))) }
        let status = await Sealbell.run(arguments + ["--at", "state"], shell)
        return (status, out.all, err.all)
    }

    /// The one JSON line that a command printed.
    func json(_ arguments: String..., input: String = "") async throws -> JSONValue {
        let out = Lines()
        var facts = facts()
        facts.workingDirectory = relay.stage.folder.path
        var shell = Shell(facts: facts, world: .live, out: { out.add($0) }, err: { out.add($0) })
        shell.patience = LocalCall.patience
        shell.input = { limit in Secret(Array(input.utf8.prefix(limit))) }
        _ = await Sealbell.run(arguments + ["--at", "state", "--json"], shell)
        return try JSONValue.parse(Array(out.all.joined().utf8))
    }
}
