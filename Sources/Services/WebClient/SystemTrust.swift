#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Where this machine keeps the certificate authorities that it trusts, as NIOSSL looks for them on Linux
/// (swift-nio-ssl, `LinuxCABundle.swift`). On Apple's systems they are always there.
///
/// A bare Debian, as in many containers, has none; then nothing that a public authority has signed is
/// trusted, and NIOSSL makes no context that would trust these beside others.
package struct SystemTrust: Sendable {
    /// PEM files, the first one that is there.
    private let files: [String]
    /// A folder of PEM files under the hashes of their names.
    private let folders: [String]

    package init(
        files: [String] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"],
        folders: [String] = ["/etc/ssl/certs"]
    ) {
        self.files = files
        self.folders = folders
    }

    /// Whether there is any authority.
    package var isThere: Bool {
        #if os(Linux)
        files.contains { size($0) > 0 } || folders.contains(where: hasAuthorities)
        #else
        true
        #endif
    }

    /// What is missing and what to do; `nil`: nothing.
    package var complaint: String? {
        guard !isThere else { return nil }
        return "This machine trusts no certificate authority (\(files.first ?? "no file") is missing or "
            + "empty), so no push service can be reached over TLS: install the package ca-certificates."
    }

    private func size(_ path: String) -> Int64 {
        var facts = stat()
        guard stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return 0 }
        return Int64(facts.st_size)
    }

    /// Whether it holds a file under the name that OpenSSL's and BoringSSL's look-up asks for: eight
    /// hexadecimal digits and a number.
    private func hasAuthorities(_ path: String) -> Bool {
        guard let folder = opendir(path) else { return false }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                Array(bytes.prefix { $0 != 0 })
            }
            let isHashed = name.count > 9 && name[8] == 0x2E && name[..<8].allSatisfy(isHexadecimal)
            if isHashed, size("\(path)/\(String(decoding: name, as: UTF8.self))") > 0 { return true }
        }
        return false
    }

    private func isHexadecimal(_ byte: UInt8) -> Bool {
        0x30...0x39 ~= byte || 0x61...0x66 ~= byte
    }
}
