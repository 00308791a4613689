import Foundation
import PushTesting
import WireFormats

/// openssl as the independent judge of signatures, and the maker of keys.
enum OpenSSL {
    /// A PKCS#8 PEM private key and its public key.
    struct KeyPair {
        let scratch: TemporaryFolder
        let privatePEM: [UInt8]
        var publicFile: String { scratch.path + "/public.pem" }

        static func p256() throws -> KeyPair {
            try KeyPair(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
        }
        static func rsa() throws -> KeyPair {
            try KeyPair(["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        }

        private init(_ options: [String]) throws {
            scratch = try TemporaryFolder()
            try Tool.run("openssl", ["genpkey"] + options + ["-out", scratch.path + "/private.pem"])
            try Tool.run(
                "openssl",
                [
                    "pkey", "-in", scratch.path + "/private.pem", "-pubout", "-out",
                    scratch.path + "/public.pem"
                ])
            privatePEM = Array(try scratch.read("private.pem").utf8)
        }
    }

    /// The parts of a compact JSON Web Token.
    struct Token {
        let input: [UInt8]
        let header: JSONValue
        let claims: JSONValue
        let signature: [UInt8]

        init(_ text: String) throws {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3 else { throw PeerFault.toolFailed("token") }
            input = Array("\(parts[0]).\(parts[1])".utf8)
            header = try JSONValue.parse(try Base64.decode(parts[0], .url))
            claims = try JSONValue.parse(try Base64.decode(parts[1], .url))
            signature = try Base64.decode(parts[2], .url)
        }
    }

    /// Throws unless the signature (DER for ECDSA, plain for RSA) is right over SHA-256.
    static func verify(_ signature: [UInt8], over input: [UInt8], by key: KeyPair) throws {
        let (signatureFile, inputFile) = (key.scratch.path + "/signature", key.scratch.path + "/input")
        try Data(signature).write(to: URL(fileURLWithPath: signatureFile))
        try Data(input).write(to: URL(fileURLWithPath: inputFile))
        try Tool.run(
            "openssl",
            [
                "dgst", "-sha256", "-verify", key.publicFile, "-signature", signatureFile, inputFile
            ])
    }

    /// JWS writes ECDSA signatures as `r‖s` (RFC 7518 §3.4), openssl reads SEQUENCE { r, s }.
    static func der(_ raw: [UInt8]) -> [UInt8] {
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var digits = Array(bytes.drop { $0 == 0 })
            if digits.first.map({ $0 > 127 }) ?? true { digits.insert(0, at: 0) }
            return [2, UInt8(digits.count)] + digits
        }
        let body = integer(raw[..<32]) + integer(raw[32...])
        return [0x30, UInt8(body.count)] + body
    }
}
