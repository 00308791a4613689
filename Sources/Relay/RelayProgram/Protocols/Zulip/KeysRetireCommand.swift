import ArgumentParser
import Primitives
import PushModel
import WireFormats

/// `sealbell keys retire PUBLIC_KEY`.
struct KeysRetireCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "retire", abstract: "Takes a key pair out of the bouncer's key file.",
        discussion: """
            Apps that hold this public key can no longer register, and tell their users to update. What is \
            registered stays. A key that a registration used in the last 30 days is refused; --anyway takes \
            it out all the same. The running relay goes on with the key until sealbell reload.
            """)

    @Argument(help: ArgumentHelp("The public key, as sealbell keys list shows it.", valueName: "public-key"))
    var publicKey: String

    @Flag(help: "Also one that is in use, or of which no running relay can say that it is not.")
    var anyway = false

    @OptionGroup var place: InstanceOption
    @OptionGroup var options: ConfigurationOverrideOptions
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let path = try BouncerKeysFile.path(
            place.instance, shell.load(options.request(adminListener.server.file)))
        let pairs = try BouncerKeysFile.read(path)
        let kept = pairs.filter { Base64.text($0.publicKey) != publicKey }
        guard kept.count < pairs.count else {
            throw CommandFailure(.failed, "\(path): the file has no such key.")
        }
        guard !kept.isEmpty else {
            throw CommandFailure(
                .failed, "It is the only key: without one no device can register. Add another one first.")
        }
        let recent = try await recentUses(shell)
        try writeSecret(path, BouncerKeysFile.text(kept))
        if adminListener.json {
            shell.out(
                try jsonText(["public_key": publicKey, "file": path, "recent": recent.map(String.init) ?? ""])
            )
        } else {
            shell.out("Taken out of \(path). It comes into force with sealbell reload.")
        }
        return .done
    }

    /// - Returns: `nil` where nobody could say, and it was to be done anyway.
    private func recentUses(_ shell: Shell) async throws(CommandFailure) -> Int64? {
        let answer: JSONValue
        do throws(CommandFailure) {
            let query = [(name: "instance", value: place.instance)]
            answer = try await adminListener.ask(KeysDesk.path, query: query, shell)
        } catch {
            if anyway { return nil }
            throw error
        }
        let uses = RunningKeys(answer).keys.first { $0.publicKey == publicKey }?.uses
        guard let uses, uses.recent > 0, !anyway else { return uses?.recent ?? 0 }
        let last = uses.days.last.map { RunningKeys.Uses.day($0.day) } ?? ""
        throw CommandFailure(
            .failed,
            "\(uses.recent) registrations used this key in the last \(uses.recentDays) days, the last on "
                + "\(last): their apps could not register any more. Wait, or say --anyway.")
    }
}
