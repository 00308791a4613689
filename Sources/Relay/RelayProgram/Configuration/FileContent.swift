import AtRest
import NIOSSL
import PushModel

/// What a file that the configuration names must hold, and how that is judged. Push services and protocols
/// add their own beside their keys.
struct FileContent: Sendable {
    enum InSandbox: Sendable {
        /// The sandbox makes it at each start.
        case made
        /// The sandbox makes it where it is not there.
        case madeOnce
        /// As everywhere.
        case needed
    }

    /// As findings say it: "It is there and holds …".
    let words: StaticString
    var isSecret = true
    var inSandbox = InSandbox.needed
    /// What is wrong with the file's bytes, or with the file of that path, as a sentence; `nil`: nothing.
    var fault: @Sendable (Secret, String) -> String? = { _, _ in nil }
    /// What a list of keys shows of bytes without a fault, or of the file of that path; `nil` of it: they are
    /// no such keys. `nil`: a list of keys leaves the file out.
    var keys: (@Sendable (Secret, String) -> [ShownKey]?)?
}

extension FileContent: Hashable {
    static func == (left: FileContent, right: FileContent) -> Bool { "\(left.words)" == "\(right.words)" }
    func hash(into hasher: inout Hasher) { hasher.combine("\(words)") }
}

extension FileContent {
    /// Judged with the machine, where it is known whether the file may yet be made.
    static let storageKeys = FileContent(
        words: "storage keys",
        keys: { _, path in
            // What is wrong with it, `config check` says.
            (try? KeyFile.read(path))?.seal.map { .number($0.number) }
        })

    static let databasePassword = FileContent(words: "a password") { bytes, _ in
        bytes.trimmed.count > 0 ? nil : "It holds no password."
    }

    static let token = FileContent(words: "a token") { bytes, _ in longEnough(bytes) }
    static let webhookSecret = FileContent(words: "a secret") { bytes, _ in longEnough(bytes) }

    static let certificate = FileContent(words: "a certificate", isSecret: false) { _, path in
        noCertificate(path)
    }

    static let authority = FileContent(words: "an authority", isSecret: false, inSandbox: .made) { _, path in
        noCertificate(path)
    }

    /// Of the operator's own receiver, which the sandbox does not stand in for.
    static let webhookAuthority = FileContent(words: "the webhook's authority", isSecret: false) { _, path in
        noCertificate(path)
    }

    static let privateKey = FileContent(words: "a private key") { _, path in
        // The reason is the parser's own text, which may quote the file.
        let key = try? NIOSSLPrivateKey(file: path, format: .pem)
        return key == nil ? "It holds no unencrypted private key in PEM." : nil
    }

    private static func noCertificate(_ path: String) -> String? {
        // As above.
        let certificates = try? NIOSSLCertificate.fromPEMFile(path)
        return certificates?.isEmpty == false ? nil : "It holds no certificate in PEM."
    }

    private static func longEnough(_ bytes: Secret) -> String? {
        bytes.trimmed.count >= 16
            ? nil : "A secret needs at least 16 bytes; openssl rand -hex 32 makes one."
    }
}
