import NIOCore
import NIOSSL
import WireFormats

/// Whether the certificate of a standing connection carries the host's name.
///
/// NIOSSL also takes a certificate that carries the address connected to, whatever name was asked for. Public
/// authorities issue such certificates, so anybody who manipulates DNS could answer for any name with a
/// certificate for their own server. Here a host name must be in the certificate by name.
enum CertificateName {
    /// Fails the connection unless the leaf has a DNS name that fits; addresses as hosts were checked by
    /// NIOSSL.
    static func check(_ host: String, on channel: any Channel) -> EventLoopFuture<Void> {
        channel.nioSSL_peerCertificate().flatMapThrowing { leaf in
            guard let leaf else { throw ExchangeFault.tlsFailed }
            let names = leaf._subjectAlternativeNames().filter { $0.nameType == .dnsName }
            let fits = names.contains { HostName.fits(host, String(decoding: $0.contents, as: UTF8.self)) }
            guard fits else { throw ExchangeFault.tlsFailed }
        }
    }
}
