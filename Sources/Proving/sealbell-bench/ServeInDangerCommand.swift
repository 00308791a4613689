import ArgumentParser
import RelayProgram

/// `sealbell-bench serve`: the relay, with options that break its promises. It is for showing that a test can
/// fail; it serves only the sandbox, or push services on this machine.
struct ServeInDangerCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Runs a relay that may lose pushes, for trials that must fail.",
        shouldDisplay: false)

    @OptionGroup var serve: ServeCommand

    @Flag(name: .customLong("danger-synchronous-normal"), help: "Lose pushes in a power cut.")
    var losesInPowerCuts = false

    @Flag(name: .customLong("danger-volatile-store"), help: "Lose pushes when the process ends.")
    var losesAtTheEnd = false

    func run(_ shell: Shell) async throws -> Ending {
        var danger = ServeDanger()
        (danger.losesInPowerCuts, danger.losesAtTheEnd) = (losesInPowerCuts, losesAtTheEnd)
        return try await serve.run(shell, in: danger)
    }
}
