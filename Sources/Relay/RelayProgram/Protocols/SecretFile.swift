import PushModel
import Secp256k1Keys
import WireFormats

/// What is wrong with the bytes of a file, as a sentence for an operator.
protocol SecretFileFault: Error { var sentence: String { get } }

/// A file of secrets that an instance reads.
protocol SecretFile: Sendable {
    associatedtype Value
    associatedtype Fault: SecretFileFault

    static func parse(_ bytes: Secret) throws(Fault) -> Value
}

/// One that we write, too.
protocol WrittenSecretFile: SecretFile {
    static var limitBytes: Int { get }
    /// The file's text.
    static func text(_ value: Value) -> Secret
}

extension SecretFile {
    /// - Throws: `CommandFailure` that names the file.
    static func read(_ path: String) throws(CommandFailure) -> Value {
        let bytes = try CredentialCache.read(path)
        do throws(Fault) { return try parse(bytes) } catch {
            throw CommandFailure(.configuration, "\(path): \(error.sentence)")
        }
    }

    /// - Parameter shown: what a list of keys may show of the file's value, which is nothing secret.
    static func content(
        _ words: StaticString, inSandbox: FileContent.InSandbox = .needed,
        shown: @escaping @Sendable (Value) -> [ShownKey]
    ) -> FileContent {
        FileContent(
            words: words, inSandbox: inSandbox,
            fault: { bytes, _ in
                do throws(Fault) { _ = try parse(bytes) } catch { return error.sentence }
                return nil
            },
            // A file with a fault has been told of by that.
            keys: { bytes, _ in (try? parse(bytes)).map(shown) })
    }
}

extension WrittenSecretFile {
    /// Writes it where there is none yet.
    ///
    /// - Throws: `CommandFailure` that names the file.
    static func make(once path: String, _ value: @autoclosure () -> Value) throws(CommandFailure) {
        try writeKeysOnce(path, limitBytes) { text(value()) }
    }
}

/// One whose key has a public half, which goes into apps.
protocol PublishedKeyFile: WrittenSecretFile {
    /// A key that nobody has had.
    static func generate(_ world: World) -> Value
    /// The public half, as apps have it.
    static func publicText(_ value: Value) -> String
}

extension PublishedKeyFile {
    /// Makes a file that is not there yet.
    ///
    /// - Returns: the public half of its key.
    /// - Throws: `CommandFailure` that names the file.
    static func make(_ path: String, _ world: World) throws(CommandFailure) -> String {
        let value = generate(world)
        try writeSecret(path, text(value), replacing: false)
        return publicText(value)
    }

    /// What a configuration names by `words`, and a sandbox makes once.
    static func content(_ words: StaticString) -> FileContent {
        content(words, inSandbox: .madeOnce) { [.publicKey(publicText($0))] }
    }
}

// MARK: Keys of secp256k1

/// Who makes key files.
protocol KeyMaker {
    /// That makes one: `sealbell keys new …`.
    static var command: String { get }
}

/// A private key as deployed servers take theirs: 64 hex digits, and a line break if need be.
protocol Secp256k1KeyFile: PublishedKeyFile, KeyMaker
where Value == Secp256k1KeyPair, Fault == Secp256k1KeyFault<Self> {}

enum Secp256k1KeyFault<Maker: KeyMaker>: String, SecretFileFault, Sendable, CaseIterable {
    case notHex, badKey

    var sentence: String {
        switch self {
        case .notHex:
            "The file must hold 64 hexadecimal digits alone; sealbell keys new \(Maker.command) makes one."
        case .badKey: "The file's number is no private key of secp256k1."
        }
    }
}

extension Secp256k1KeyFile {
    static var limitBytes: Int { 1 << 10 }

    static func parse(_ bytes: Secret) throws(Fault) -> Secp256k1KeyPair {
        let text = bytes.trimmed
        guard text.count == 2 * Secp256k1KeyPair.secretBytes, let scalar = text.fromHex else {
            throw .notHex
        }
        do { return try Secp256k1KeyPair(secret: scalar) } catch { throw .badKey }
    }

    static func text(_ pair: Secp256k1KeyPair) -> Secret { pair.secret.hexLine }
    static func generate(_ world: World) -> Secp256k1KeyPair { .generate(world) }

    /// Makes a file that is not there yet, and says the public half of its key.
    static func make(_ file: String, json: Bool, _ shell: Shell) throws -> Ending {
        let path = joinPath(shell.facts.workingDirectory, file)
        let key = try make(path, shell.world)
        shell.out(json ? try jsonText(["public_key": key, "file": path]) : key)
        return .done
    }
}
