import ArgumentParser
import AtRest
import Primitives
import PushModel
import WireFormats

/// `sealbell keys`.
struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Makes and exchanges keys.",
        subcommands: [KeysNewCommand.self, KeysRotateStorageCommand.self])
}

/// `sealbell keys new`.
struct KeysNewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new", abstract: "Makes a key.",
        subcommands: [KeysNewZulipCommand.self, KeysNewNostrCommand.self, KeysNewStorageCommand.self])
}

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
        var standing: Secret?
        do throws(FileFault) {
            standing = try readSecret(path, limitBytes: BouncerKeysFile.limitBytes)
        } catch {
            guard error == .missing else { throw CommandFailure(.failed, "\(path): \(error.sentence)") }
        }
        var pairs = try standing.map { try parse($0, path) } ?? []
        let made = X25519KeyPair.generate(shell.world)
        let publicKey = Base64.text(made.publicKey)
        pairs.append(made)
        do throws(FileFault) {
            let text = BouncerKeysFile.text(pairs)
            try text.reveal { raw throws(FileFault) in try writeFile(path, raw, replacing: true) }
        } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
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
        let instances = try shell.load(options.request()).instances.filter { $0.zulip != nil }
        guard let instance else {
            guard instances.count == 1, let file = instances.first?.zulip?.keysFile else {
                throw CommandFailure(
                    .usage, "There are several Zulip instances, or none; say which one with --instance.")
            }
            return file
        }
        guard let file = instances.first(where: { $0.name.text == instance })?.zulip?.keysFile else {
            throw CommandFailure(.usage, "The configuration has no Zulip instance of that name.")
        }
        return file
    }
}

/// `sealbell keys new nostr`: makes the key of a notification server, and says the public half.
struct KeysNewNostrCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "nostr",
        abstract: "Makes the key of a Marmot notification server.",
        discussion: """
            Prints the public key, which goes into your build of the app. An existing file is never \
            overwritten: tokens that were encrypted to it could not be opened any more.
            """)

    @Option(help: ArgumentHelp("The key file.", valueName: "file"))
    var file: String

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let path = joinPath(shell.facts.workingDirectory, file)
        let pair = Secp256k1KeyPair.generate(shell.world)
        do throws(FileFault) {
            let text = NostrKeyFile.text(pair)
            try text.reveal { raw throws(FileFault) in try writeFile(path, raw, replacing: false) }
        } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
        let key = pair.publicKey.hex
        shell.out(json ? try jsonText(["public_key": key, "file": path]) : key)
        return .done
    }
}

/// `sealbell keys new storage`: makes the key file that seals the store, before the first start.
struct KeysNewStorageCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage",
        abstract: "Makes the key file that seals the store.",
        discussion: """
            The relay makes one itself at its first start; make it beforehand to back it up or to hand it \
            to a service manager. An existing file is never overwritten: the store would be lost with it.
            """)

    @Option(help: ArgumentHelp("The key file, instead of the one of the configuration.", valueName: "file"))
    var file: String?

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Answer in JSON.")
    var json = false

    func run(_ shell: Shell) async throws -> Ending {
        let path: String
        if let file {
            path = joinPath(shell.facts.workingDirectory, file)
        } else {
            path = try shell.load(options.request()).store.keysFile
        }
        do throws(FileFault) { try makeFolder(folder(of: path)) } catch {
            throw CommandFailure(.failed, "\(folder(of: path)): \(error.sentence)")
        }
        do throws(KeyFileError) { _ = try KeyFile.create(path, shell.world) } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
        shell.out(json ? try jsonText(["file": path]) : path)
        return .done
    }
}
