import Crypto
public import PushModel

/// A certificate authority made on the spot, so that clients can check a simulator's TLS as they check
/// Apple's.
///
/// P-256 throughout, X.509 v3 (RFC 5280), valid for ten years. The keys exist in this process only.
public struct CertificateAuthority: Sendable {
    /// A certificate and its key, both PEM.
    public struct Issued: Sendable {
        /// The certificate alone, without the authority's.
        public let certificatePEM: String
        /// PKCS#8, P-256.
        public let privateKeyPEM: String
    }

    /// The certificate that clients must trust.
    public let certificatePEM: String
    private let key: P256.Signing.PrivateKey
    private let validFrom: Int64

    /// - Throws: `.certificateNotMade`.
    public init() throws(SimulatorError) { try self.init(world: .live) }

    /// Valid from an hour before `world`'s now.
    package init(world: World) throws(SimulatorError) {
        key = P256.Signing.PrivateKey()
        validFrom = world.now().seconds - 3600
        let certificate = try Self.certificate(
            subject: Self.name, publicKey: key.publicKey, extensions: Self.authorityExtensions,
            issuerKey: key, from: validFrom)
        certificatePEM = PEM.text("CERTIFICATE", certificate)
    }

    /// A certificate for `localhost`, `127.0.0.1` and `::1`.
    ///
    /// - Throws: `.certificateNotMade`.
    public func issue() throws(SimulatorError) -> Issued {
        let serverKey = P256.Signing.PrivateKey()
        let certificate = try Self.certificate(
            subject: "localhost", publicKey: serverKey.publicKey, extensions: Self.serverExtensions,
            issuerKey: key, from: validFrom)
        return Issued(
            certificatePEM: PEM.text("CERTIFICATE", certificate), privateKeyPEM: serverKey.pemRepresentation)
    }

    private typealias DER = DistinguishedEncoding
    private static let name = "Sealbell simulators"
    private static let tenYearsSeconds: Int64 = 10 * 365 * 86_400

    /// RFC 5280 §4.1; signature ecdsa-with-SHA256 (RFC 5758 §3.2).
    private static func certificate(
        subject: String, publicKey: P256.Signing.PublicKey, extensions: [UInt8],
        issuerKey: P256.Signing.PrivateKey, from: Int64
    ) throws(SimulatorError) -> [UInt8] {
        let algorithm = DER.sequence(DER.identifier(1, 2, 840, 10045, 4, 3, 2))
        let serial = SymmetricKey(size: .init(bitCount: 120)).withUnsafeBytes { Array($0) }
        let body = DER.sequence(
            DER.element(0xA0, DER.integer([2])), DER.integer(serial), algorithm, distinguishedName(name),
            DER.sequence(DER.time(unixSeconds: from), DER.time(unixSeconds: from + tenYearsSeconds)),
            distinguishedName(subject), Array(publicKey.derRepresentation), DER.element(0xA3, extensions))
        do {
            let signature = try issuerKey.signature(for: body)
            return DER.sequence(body, algorithm, DER.bits(Array(signature.derRepresentation)))
        } catch {
            throw SimulatorError(.certificateNotMade)
        }
    }

    private static func distinguishedName(_ text: String) -> [UInt8] {
        DER.sequence(DER.set(DER.sequence(DER.identifier(2, 5, 4, 3), DER.text(text))))
    }

    /// Basic constraints (CA) and key usage keyCertSign, both critical.
    private static var authorityExtensions: [UInt8] {
        DER.sequence(
            DER.sequence(DER.identifier(2, 5, 29, 19), DER.yes, DER.octets(DER.sequence(DER.yes))),
            DER.sequence(DER.identifier(2, 5, 29, 15), DER.yes, DER.octets([0x03, 0x02, 0x02, 0x04])))
    }

    /// Subject alternative names, extended key usage serverAuth.
    private static var serverExtensions: [UInt8] {
        let names = DER.sequence(
            DER.element(0x82, Array("localhost".utf8)), DER.element(0x87, [127, 0, 0, 1]),
            DER.element(0x87, [UInt8](repeating: 0, count: 15) + [1]))
        return DER.sequence(
            DER.sequence(DER.identifier(2, 5, 29, 17), DER.octets(names)),
            DER.sequence(
                DER.identifier(2, 5, 29, 37),
                DER.octets(DER.sequence(DER.identifier(1, 3, 6, 1, 5, 5, 7, 3, 1)))))
    }
}
