import ArgumentParser
import Primitives
import PushModel
import WireFormats
import ZulipPush

/// `sealbell keys list`.
struct KeysListCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the bouncer's keys at a running relay: since when, and how often apps use each.",
        discussion: """
            A use is a registration of a device, a repeated one too; apps repeat theirs every 30 days. Days \
            are of UTC, and known for 42 days; --json has each of them.
            """)

    @OptionGroup var place: InstanceOption
    @OptionGroup var adminListener: AdminListenerOptions

    func run(_ shell: Shell) async throws -> Ending {
        let answer = try await adminListener.keys(of: place, shell)
        adminListener.show(answer, shell) { ($0["keys"]?.array ?? []).flatMap(Self.lines) }
        return .done
    }

    private static func lines(_ key: JSONValue) -> [String] {
        let since = key["since"]?.int64.map { "since \(day($0))" } ?? "new"
        let last = key["days"]?.array?.last?["day"]?.int64
        let uses =
            last.map {
                "\(key["recent"]?.int64 ?? 0) registrations in \(ZulipLimits.keyUseDays) days, "
                    + "the last on \(day($0))"
            } ?? "no registration in 42 days"
        return [key["public_key"]?.string ?? "", "  in the file \(since); \(uses)"]
    }

    /// `2026-06-10`
    static func day(_ milliseconds: Int64) -> Substring {
        timestamp(UnixTime(milliseconds: milliseconds)).prefix(10)
    }
}

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
            answer = try await adminListener.keys(of: place, shell)
        } catch {
            if anyway { return nil }
            throw error
        }
        let key = answer["keys"]?.array?.first { $0["public_key"]?.string == publicKey }
        let recent = key?["recent"]?.int64 ?? 0
        guard recent > 0, !anyway else { return recent }
        let last = key?["days"]?.array?.last?["day"]?.int64.map { KeysListCommand.day($0) } ?? ""
        throw CommandFailure(
            .failed,
            "\(recent) registrations used this key in the last \(ZulipLimits.keyUseDays) days, the last on "
                + "\(last): their apps could not register any more. Wait, or say --anyway.")
    }
}

extension AdminListenerOptions {
    fileprivate func keys(
        of place: InstanceOption, _ shell: Shell
    ) async throws(CommandFailure) -> JSONValue {
        try await ask(ZulipDesk.keysPath, query: [("instance", place.instance)], shell)
    }
}
