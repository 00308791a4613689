import PushModel
import PushTesting
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
    func run(_ arguments: String..., input: String = "") async -> CommandRun {
        await run(arguments, input: input)
    }

    func run(_ arguments: [String], input: String = "") async -> CommandRun {
        await .of(arguments + ["--at", "state"], in: relay.stage.folder.path, input: input)
    }

    /// The one JSON line that a command printed.
    func json(_ arguments: String..., input: String = "") async throws -> JSONValue {
        let run = await run(arguments + ["--json"], input: input)
        return try JSONValue.parse(Array(run.lines.joined().utf8))
    }
}
