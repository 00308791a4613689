import NIOCore
import NIOSSL
import PushModel

/// A listener's own certificate: PEM files that are read again at every reload.
package struct TLSFiles: Sendable {
    /// The chain, leaf first.
    package var certificateChain: String
    package var privateKey: String

    package init(certificateChain: String, privateKey: String) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }

    /// TLS 1.2 and later, HTTP/1.1 alone.
    ///
    /// - Throws: `.tlsUnusable` whatever is wrong with the files, so that no path reaches an error text.
    func context(of listener: ConfiguredName) throws(IngressError) -> NIOSSLContext {
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(certificateChain)
            let key = try NIOSSLPrivateKey(file: privateKey, format: .pem)
            var settings = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            settings.minimumTLSVersion = .tlsv12
            settings.applicationProtocols = ["http/1.1"]
            // A peer that does not say goodbye is not waited for any longer.
            settings.shutdownTimeout = .seconds(1)
            return try NIOSSLContext(configuration: settings)
        } catch {
            throw IngressError(.tlsUnusable, [listener])
        }
    }
}
