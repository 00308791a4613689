import ArgumentParser
import Primitives
import PushModel
import WireFormats

/// `sealbell keys new zulip`: adds a key pair to a bouncer key file, and says the public half.
struct KeysNewZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "zulip",
        abstract: "Adds a key pair to the bouncer's keys.",
        discussion: """
            Prints the public key, which goes into your build of the app. Old pairs stay: apps that hold \
            their public keys still register.
            """)

    @Option(help: ArgumentHelp("The key file; made when it is not there.", valueName: "file"))
    var file: String?

    @Option(help: ArgumentHelp("The instance whose key file is meant.", valueName: "name"))
    var instance: String?

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Answer in JSON.")
    var json = false

    func validate() throws {
        if file != nil, instance != nil { throw ValidationError("Name a file or an instance, not both.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let path = try keyFile(shell)
        do throws(FileFault) { try makeFolder(folder(of: path)) } catch {
            throw CommandFailure(.failed, "\(folder(of: path)): \(error.sentence)")
        }
        var present: Secret?
        do throws(FileFault) {
            present = try readSecret(path, limitBytes: BouncerKeysFile.limitBytes)
        } catch {
            guard error == .missing else { throw CommandFailure(.failed, "\(path): \(error.sentence)") }
        }
        var pairs = try present.map { try parse($0, path) } ?? []
        let made = X25519KeyPair.generate(shell.world)
        let publicKey = Base64.text(made.publicKey)
        pairs.append(made)
        try writeSecret(path, BouncerKeysFile.text(pairs))
        shell.out(json ? try jsonText(["public_key": publicKey, "file": path]) : publicKey)
        return .done
    }

    private func parse(_ bytes: Secret, _ path: String) throws(CommandFailure) -> [X25519KeyPair] {
        do throws(BouncerKeysFile.Fault) {
            return try BouncerKeysFile.parse(bytes)
        } catch .empty {
            return []
        } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }

    private func keyFile(_ shell: Shell) throws -> String {
        if let file { return joinPath(shell.facts.workingDirectory, file) }
        return try BouncerKeysFile.path(instance, shell.load(options.request()))
    }
}

extension BouncerKeysFile {
    /// The key file of the instance of that name; `nil`: of the only Zulip instance.
    static func path(
        _ instance: String?, _ configuration: RelayConfiguration
    ) throws(CommandFailure) -> String {
        let files = configuration.instances.filter { instance == nil || $0.name.text == instance }
            .compactMap { $0.zulip?.keysFile }
        guard files.count == 1, let file = files.first else {
            throw CommandFailure(
                .usage,
                instance == nil
                    ? "There are several Zulip instances, or none; say which one with --instance."
                    : "The configuration has no Zulip instance of that name.")
        }
        return file
    }
}
