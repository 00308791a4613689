#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import AdminIngress
import NIOSSL
import PushModel

/// Looks at every file that the configuration names: there, readable, closed to others, holding what it
/// should.
struct FileChecks {
    /// A certificate that expires within this many days gets a warning: automatic renewal has had a week.
    private static let soonDays = 21

    let now: @Sendable () -> UnixTime
    /// Where a service manager has put credentials for this process: it gives the right to read them by an
    /// access list, which shows as a right of the group.
    let credentials: String?

    init(_ now: @escaping @Sendable () -> UnixTime, credentials: String? = nil) {
        self.now = now
        self.credentials = credentials
    }

    /// - Parameter looks: whether a file is looked at; that of the storage keys never is here.
    func check(
        _ configuration: RelayConfiguration, where looks: (ConfiguredFile) -> Bool = { _ in true }
    ) -> [Finding] {
        let files = configuration.files.filter { $0.content != .storageKeys && looks($0) }
        let pairs = configuration.listeners.compactMap(pair)
        return files.map(check) + pairs
    }

    private func check(_ file: ConfiguredFile) -> Finding {
        let subject = "\(file.path) (\(file.file))"
        let bytes: Secret
        do throws(FileFault) {
            bytes = try readSecret(file.file, limitBytes: credentialLimitBytes)
        } catch {
            return .fault(.files, subject, error.sentence)
        }
        if let sentence = file.content.fault(bytes, file.file) { return .fault(.files, subject, sentence) }
        if file.content.isSecret, let shared = shared(file.file) {
            return shared
                ? .fault(.files, subject, Self.openSentence) : .warning(.files, subject, Self.openSentence)
        }
        if file.content == .certificate, let span = CertificateSpan(file: file.file) {
            return validity(subject, span)
        }
        return .good(.files, subject, "It exists and contains \(file.content.words).")
    }

    /// The certificate and the key of a listener must belong together.
    private func pair(_ listener: ListenerConfiguration) -> Finding? {
        guard let tls = listener.tls,
            // Files that cannot be read have their own findings.
            let chain = try? NIOSSLCertificate.fromPEMFile(tls.certificateFile), !chain.isEmpty,
            let key = try? NIOSSLPrivateKey(file: tls.keyFile, format: .pem)  // As above.
        else { return nil }
        let configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        let subject = "listeners.\(listener.name).tls"
        do {
            _ = try NIOSSLContext(configuration: configuration)
            return .good(.files, subject, "Certificate and key belong together.")
        } catch {
            return .fault(.files, subject, "The private key does not belong to the certificate.")
        }
    }

    private func validity(_ subject: String, _ span: CertificateSpan) -> Finding {
        let now = now()
        if now < span.from {
            return .fault(
                .certificates, subject,
                "The certificate is not good before \(timestamp(span.from)): look at the clock, or wait.")
        }
        let days = span.days(at: now)
        if days == 0 {
            return .fault(
                .certificates, subject,
                "The certificate or one in its chain has expired; renew it and reload.")
        }
        if days <= Self.soonDays {
            return .warning(
                .files, subject,
                "The certificate expires within \(counted(days, "day")); renew it, reload, and find out "
                    + "why nothing renewed it."
            )
        }
        return .good(.files, subject, "The certificate is valid for another \(counted(days, "day")).")
    }

    static let openSentence = "Other users can read this secret; run chmod 600 on it."

    /// What a relay refuses to start with, and to reload: the same secrets in open files that the checks
    /// above find fault with, and the keys of the store.
    ///
    /// - Throws: `CommandFailure(.configuration)` that names each of them.
    static func refuseOpenSecrets(_ configuration: RelayConfiguration) throws(CommandFailure) {
        let hasFile = configuration.store.engine != .memory
        let open = configuration.files.filter { file in
            file.content.isSecret && (hasFile || file.content != .storageKeys)
                && rights(file.file) & 0o007 != 0
        }
        guard open.isEmpty else {
            throw CommandFailure(
                .configuration, lines: open.map { "\($0.path) (\($0.file)): \(openSentence)" })
        }
    }

    /// Whether everybody may do something with a file.
    static func isOpenToAll(_ path: String) -> Bool { rights(path) & 0o007 != 0 }

    /// Who may do what with a file; nobody anything with one that is not there.
    private static func rights(_ path: String) -> UInt32 {
        var facts = stat()
        return stat(path, &facts) == 0 ? UInt32(facts.st_mode) & 0o777 : 0
    }

    /// Whether everybody may open a file, or its group alone, as mounted secrets are shared on purpose;
    /// `nil`: neither.
    func shared(_ path: String) -> Bool? {
        let rights = Self.rights(path)
        if rights & 0o007 != 0 { return true }
        let isManaged = credentials.map { path.hasPrefix($0 + "/") } ?? false
        return rights & 0o070 != 0 && !isManaged ? false : nil
    }
}
