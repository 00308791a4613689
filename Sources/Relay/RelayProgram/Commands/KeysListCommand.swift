import ArgumentParser
import PushModel

/// `sealbell keys list`.
struct KeysListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the keys that the configuration names: public halves, files, and how they are used.",
        discussion: """
            Reads the key files of the instances and of the store, and shows of each key its public half or \
            its number alone. A running relay is asked which of them are in force, and, where registrations \
            tell it, how often apps use each: a use is a registration of a device, a repeated one too. Days \
            are of UTC; --json has each of them. Ends with 1 when a file cannot be read.
            """)

    @OptionGroup var place: InstanceOption
    @OptionGroup var options: ConfigurationOverrideOptions
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let configuration = try configuration(shell)
        let running: RunningKeys?
        do throws(CommandFailure) {
            let query = [(name: "instance", value: place.instance)]
            running = RunningKeys(try await adminListener.ask(KeysDesk.path, query: query, shell))
        } catch {
            // Without a configuration there is nothing else to show.
            guard configuration != nil else { throw error }
            running = nil
            shell.err("Which keys are in force is not known: " + error.lines.joined(separator: " "))
        }
        var listing = KeyListing()
        if let configuration { listing.read(configuration, only: place.instance) }
        if let running { listing.compare(with: running) }
        guard place.instance == nil || !listing.files.isEmpty else {
            throw CommandFailure(.failed, "The configuration has no instance of that name that has keys.")
        }
        if adminListener.json {
            shell.out(try jsonText(["keys": listing.rows]))
        } else {
            listing.lines.forEach(shell.out)
        }
        return listing.files.contains { $0.fault != nil } ? .failed : .done
    }

    /// - Returns: `nil` where none is named and none is found, or where the one that is found is not of the
    ///   server that `--at` names: then that server alone can tell.
    private func configuration(_ shell: Shell) throws -> RelayConfiguration? {
        let server = adminListener.server
        let other = server.file == nil ? server.state.map { joinPath(shell.facts.workingDirectory, $0) } : nil
        do throws(ConfigurationError) {
            let found = try shell.load(options.request(server.file))
            return other.map { $0 == found.state } == false ? nil : found
        } catch {
            guard server.file == nil, error.faults.contains(where: { $0.code == .noFile }) else {
                throw error
            }
            return nil
        }
    }
}
