import Crypto
import Foundation
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOSSL
import PushModel

/// Looks at every file that the configuration names: there, readable, closed to others, holding what it
/// should.
struct FileChecks {
    /// No credential comes near it.
    static let limitBytes = 1 << 20
    /// A certificate that ends within so many seconds deserves a word.
    private static let soonSeconds: Int64 = 21 * 86_400

    let now: @Sendable () -> UnixTime

    init(_ now: @escaping @Sendable () -> UnixTime) { self.now = now }

    func check(_ configuration: RelayConfiguration) -> [Finding] {
        let files = configuration.files.filter { $0.content != .storageKeys }
        let pairs = configuration.listeners.compactMap(pair)
        return files.map(check) + pairs
    }

    private func check(_ file: ConfiguredFile) -> Finding {
        let subject = "\(file.path) (\(file.file))"
        let bytes: Secret
        do throws(FileFault) {
            bytes = try readSecret(file.file, limitBytes: Self.limitBytes)
        } catch {
            return .fault(.files, subject, error.sentence)
        }
        if let sentence = content(file.content, bytes, file.file) { return .fault(.files, subject, sentence) }
        if file.content.isSecret, let mode = mode(file.file), mode & 0o077 != 0 {
            // A service manager's credentials and mounted secrets may be shared with a group on purpose.
            let others = mode & 0o007 != 0
            let sentence = "Other users may open this secret; chmod 600 it."
            return others ? .fault(.files, subject, sentence) : .warning(.files, subject, sentence)
        }
        if file.content == .certificate, let ends = ends(file.file) {
            return validity(subject, ends)
        }
        return .good(.files, subject, "It is there and holds \(file.content.words).")
    }

    /// What is wrong with the content; `nil` when nothing is.
    private func content(_ content: ConfiguredFile.Content, _ bytes: Secret, _ path: String) -> String? {
        switch content {
        case .apnsKey:
            return isAPNsKey(bytes)
                ? nil : "It holds no P-256 private key in PKCS#8 PEM, as Apple's .p8 files do."
        case .serviceAccount:
            return serviceAccountFault(bytes)
        case .bouncerKeys:
            do throws(BouncerKeysFile.Fault) {
                _ = try BouncerKeysFile.parse(bytes)
                return nil
            } catch {
                return error.sentence
            }
        case .certificate, .authority:
            // The reason is the parser's own text, which may quote the file.
            let certificates = try? NIOSSLCertificate.fromPEMFile(path)
            return certificates?.isEmpty == false ? nil : "It holds no certificate in PEM."
        case .privateKey:
            // As above.
            let key = try? NIOSSLPrivateKey(file: path, format: .pem)
            return key == nil ? "It holds no unencrypted private key in PEM." : nil
        case .token, .webhookSecret:
            let count = trimmedCount(bytes)
            return count >= 16 ? nil : "A secret needs at least 16 bytes; openssl rand -hex 32 makes one."
        case .storageKeys:
            return nil
        }
    }

    /// Bytes without the line break at the end that editors leave.
    private func trimmedCount(_ bytes: Secret) -> Int {
        bytes.reveal { raw in
            raw.count - raw.reversed().prefix { $0 == 0x0A || $0 == 0x0D || $0 == 0x20 }.count
        }
    }

    private func isAPNsKey(_ bytes: Secret) -> Bool {
        guard var der = pemBody(bytes, label: "PRIVATE KEY") else { return false }
        defer { wipeData(&der) }
        // Whatever is wrong with it, the sentence is the same.
        return (try? P256.Signing.PrivateKey(derRepresentation: der)) != nil
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

    private func ends(_ path: String) -> Int64? {
        // Unreadable files were told of before.
        guard let chain = try? NIOSSLCertificate.fromPEMFile(path), let leaf = chain.first else { return nil }
        return Int64(leaf.notValidAfter)
    }

    private func validity(_ subject: String, _ ends: Int64) -> Finding {
        let left = ends - now().seconds
        if left <= 0 { return .fault(.files, subject, "The certificate has run out; renew it.") }
        if left < Self.soonSeconds {
            return .warning(.files, subject, "The certificate runs out in \(left / 86_400) days; renew it.")
        }
        return .good(.files, subject, "The certificate is good for \(left / 86_400) days more.")
    }

    private func mode(_ path: String) -> UInt32? {
        var facts = stat()
        return stat(path, &facts) == 0 ? UInt32(facts.st_mode) & 0o777 : nil
    }
}

extension ConfiguredFile.Content {
    var isSecret: Bool {
        switch self {
        case .storageKeys, .apnsKey, .serviceAccount, .bouncerKeys, .privateKey, .token, .webhookSecret: true
        case .certificate, .authority: false
        }
    }

    var words: String {
        switch self {
        case .storageKeys: "storage keys"
        case .apnsKey: "an APNs key"
        case .serviceAccount: "a service account"
        case .bouncerKeys: "bouncer keys"
        case .certificate: "a certificate"
        case .privateKey: "a private key"
        case .authority: "an authority"
        case .token: "a token"
        case .webhookSecret: "a secret"
        }
    }
}

/// The decoded body of the first PEM block of that label; `nil` when there is none. The caller wipes it.
func pemBody(_ bytes: Secret, label: String) -> Data? {
    bytes.reveal { raw in
        let head = Data("-----BEGIN \(label)-----".utf8)
        let foot = Data("-----END \(label)-----".utf8)
        var text = Data(raw)
        defer { wipeData(&text) }
        guard let start = text.range(of: head), let end = text[start.upperBound...].range(of: foot) else {
            return nil
        }
        var body = Data(text[start.upperBound..<end.lowerBound].filter { $0 > 0x20 })
        defer { wipeData(&body) }
        return Data(base64Encoded: body)
    }
}

/// The parts of a Google service account that can be named without opening its key.
struct ServiceAccountOutline: Decodable {
    let type: String
    let projectID: String
    let clientEmail: String
    let tokenURI: String
    let hasKey: Bool

    private enum CodingKeys: String, CodingKey {
        case type
        case projectID = "project_id"
        case clientEmail = "client_email"
        case tokenURI = "token_uri"
        case privateKey = "private_key"
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        type = try container.decode(String.self, forKey: .type)
        projectID = try container.decode(String.self, forKey: .projectID)
        clientEmail = try container.decode(String.self, forKey: .clientEmail)
        tokenURI = try container.decode(String.self, forKey: .tokenURI)
        // The key itself stays where it is.
        hasKey = container.contains(.privateKey)
    }

    /// `nil` when the bytes are no service account.
    init?(_ bytes: Secret) {
        let outline: ServiceAccountOutline? = bytes.reveal { raw in
            var data = Data(raw)
            defer { wipeData(&data) }
            // Whatever is wrong with it, the sentence is the same.
            return try? JSONDecoder().decode(ServiceAccountOutline.self, from: data)
        }
        guard let outline else { return nil }
        self = outline
    }
}

private func serviceAccountFault(_ bytes: Secret) -> String? {
    guard let account = ServiceAccountOutline(bytes), account.hasKey else {
        return
            "It is no service account: type, project_id, private_key, client_email and token_uri are needed."
    }
    guard account.type == "service_account" else {
        return "It is a credential of another type; make a key of a service account in Google's console."
    }
    guard HTTPSURL(account.tokenURI) != nil else { return "Its token_uri is no https:// address." }
    let hasKey: Bool = bytes.reveal { raw in
        Data(raw).range(of: Data("-----BEGIN PRIVATE KEY-----".utf8)) != nil
    }
    return hasKey ? nil : "Its private_key is no PKCS#8 PEM."
}
