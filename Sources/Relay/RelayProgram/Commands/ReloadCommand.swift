#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import ArgumentParser
import PushModel

/// `sealbell reload`.
struct ReloadCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Has the running relay read its configuration again, and says what came of it.",
        discussion: """
            Sends SIGHUP to the relay, as `kill -HUP` does. If the configuration has a fault or a change \
            that needs a restart, the former configuration stays in force, the faults are printed here and \
            in the relay's log, and the status is 78. Meant for ExecReload of a systemd unit.
            """)

    @OptionGroup var server: RunningServerOptions

    @Option(help: ArgumentHelp("How long to wait for the relay's word.", valueName: "seconds"))
    var wait = 60

    /// How often the run file is looked at; a reload takes some tens of milliseconds.
    private static let look = Duration.milliseconds(20)

    func validate() throws {
        guard (1...3_600).contains(wait) else { throw ValidationError("1 to 3,600 seconds.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let before = try server.find(shell)
        guard !before.urls.keys.allSatisfy({ $0.hasPrefix("sandbox-") }) else {
            throw CommandFailure(
                .unavailable, "That is a sandbox without a relay; it has nothing to reload.")
        }
        guard kill(before.pid, SIGHUP) == 0 else {
            throw CommandFailure(
                .failed,
                errno == EPERM
                    ? "The relay (process \(before.pid)) is another user's: ask as that user, or as root."
                    : "The relay (process \(before.pid)) has just ended.")
        }
        let until = shell.world.instant() + .seconds(wait)
        while shell.world.instant() < until {
            let relay = try server.find(shell)
            guard relay.pid == before.pid else {
                throw CommandFailure(.unavailable, "Another relay has taken its place.")
            }
            if let reload = relay.reload, reload.number > before.reload?.number ?? 0 {
                guard reload.faults.isEmpty else {
                    throw CommandFailure(
                        .configuration,
                        lines: reload.faults + ["Refused: the previous configuration is still in force."])
                }
                shell.out("The configuration is in force.")
                return .done
            }
            try await shell.world.sleep(shell.world.instant() + Self.look)
        }
        throw CommandFailure(.failed, "The relay did not report the result in time: see its log.")
    }
}
