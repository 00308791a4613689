import NIOCore
import NIOSSL
import PushModel

/// Whether the certificate of a standing connection carries the host's name.
///
/// NIOSSL also takes a certificate that carries the address connected to, whatever name was asked for. Public
/// authorities issue such certificates, so whoever bends DNS could answer in any name with a certificate for
/// a server of their own. Here a name needs a name.
enum CertificateName {
    /// Fails the connection unless the leaf has a DNS name that fits; addresses as hosts were checked by
    /// NIOSSL.
    static func check(_ host: String, on channel: any Channel) -> EventLoopFuture<Void> {
        channel.nioSSL_peerCertificate().flatMapThrowing { leaf in
            guard let leaf else { throw ExchangeFault.unreachable }
            let names = leaf._subjectAlternativeNames().filter { $0.nameType == .dnsName }
            guard names.contains(where: { fits(host, String(decoding: $0.contents, as: UTF8.self)) }) else {
                throw ExchangeFault.unreachable
            }
        }
    }

    /// RFC 6125 §6.4: equal but for case, or a wildcard for exactly the leftmost label.
    static func fits(_ host: String, _ pattern: String) -> Bool {
        let host = host.lowercased()
        let pattern = pattern.lowercased()
        guard pattern.hasPrefix("*.") else { return host == pattern }
        guard let dot = host.firstIndex(of: ".") else { return false }
        return host[dot...] == pattern.dropFirst() && pattern.dropFirst(2).contains(".")
    }
}
