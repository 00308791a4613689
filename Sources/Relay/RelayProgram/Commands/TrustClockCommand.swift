import ArgumentParser
import PushModel
import WireFormats

/// `sealbell store trust-clock`.
struct StoreTrustClockCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust-clock",
        abstract: "Confirms that this machine's clock is right after no relay has run for a long time.",
        discussion: """
            If a relay's clock is more than six hours ahead of the last time that its store knows, nothing \
            expires by it: what the relay owes and remembers stays until the clock comes back or you run \
            this command. Look at the clock first: if it is wrong, set it instead. Without an argument the \
            command tells the running relay; with a store, it changes that store.
            """)

    @Argument(help: ArgumentHelp("A store: sqlite:PATH or postgresql://…", valueName: "url"))
    var url: String?

    @Flag(help: "Yes, the clock is right, and what has expired by it may be deleted.")
    var yes = false

    @OptionGroup var password: DatabasePasswordOption
    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        guard yes else {
            throw ValidationError("Whatever has expired by the clock will be deleted; confirm it with --yes.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        guard let url else {
            let before = try await adminListener.ask(ClockDesk.trustPath, shell) { _ in }
            adminListener.show(before, shell) { before in
                [
                    before["doubted"]?.bool == true
                        ? "The relay believes its clock again: \(timestamp(shell.world.now()))."
                        : "The relay believed its clock already."
                ]
            }
            return .done
        }
        let place = try StorePlace(url, shell.facts, passwordFile: password.passwordFile)
        let held = try await place.hold(makes: false, shell.world)
        do throws(StoreError) {
            try await held.store.put(
                setting: LastTime.setting, to: LastTime.bytes(shell.world.now()))
        } catch {
            await held.close()
            throw place.failure(error)
        }
        await held.close()
        shell.out("\(place.name) goes by \(timestamp(shell.world.now())).")
        return .done
    }
}
