import Crypto
import Foundation
import Primitives
import PushModel
import Testing
import WireFormats

@testable import RelayProgram

/// A private key that is nobody's, and the public key that belongs to it.
private let privateBytes = [UInt8](1...32)
private var publicText: String {
    get throws {
        try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: privateBytes).publicKey.rawRepresentation
            .base64EncodedString()
    }
}
private let privateText = Data(privateBytes).base64EncodedString()

@Suite("The bouncer's key file")
struct BouncerKeysTests {
    private func parse(_ text: String) throws(BouncerKeysFile.Fault) -> [X25519KeyPair] {
        try BouncerKeysFile.parse(Secret(Array(text.utf8)))
    }

    @Test("The deployed form, a JSON map of public to private, is read, and what is written is read again")
    func roundTrip() throws {
        // As Python's json.dumps writes it.
        let pairs = try parse("{\"\(try publicText)\": \"\(privateText)\"}\n")
        #expect(pairs.map { Base64.text($0.publicKey) } == [try publicText])
        #expect(pairs[0].privateKey == Secret(privateBytes))
        let more = pairs + [.generate(.live), .generate(.live)]
        let text = BouncerKeysFile.text(more)
        let again = try BouncerKeysFile.parse(text)
        #expect(again.map { Base64.text($0.publicKey) } == more.map { Base64.text($0.publicKey) })
        for (left, right) in zip(again, more) { #expect(left.privateKey == right.privateKey) }
        let object = text.reveal { raw in Data(raw) }
        let foreign = try #require(JSONSerialization.jsonObject(with: object) as? [String: String])
        #expect(foreign[try publicText] == privateText)
    }

    @Test("A slash may be escaped, as some writers do")
    func escaped() throws {
        var pair = X25519KeyPair.generate(.live)
        while !Base64.text(pair.publicKey).contains("/") { pair = .generate(.live) }
        let text = BouncerKeysFile.text([pair]).reveal { String(decoding: $0, as: UTF8.self) }
        #expect(
            try parse(text.replacing("/", with: "\\/")).map { Base64.text($0.publicKey) } == [
                Base64.text(pair.publicKey)
            ])
    }

    @Test("Every pair that a fresh key makes is different")
    func fresh() {
        #expect(Set((0..<50).map { _ in Base64.text(X25519KeyPair.generate(.live).publicKey) }).count == 50)
    }

    @Test("Whatever is no such map is refused by its own word")
    func refused() throws {
        let key = try publicText
        let pair = "\"\(key)\": \"\(privateText)\""
        let other = Base64.text(X25519KeyPair.generate(.live).publicKey)
        let bad: [(String, BouncerKeysFile.Fault)] = [
            ("", .notAnObject), ("[]", .notAnObject), ("{", .notAnObject), ("{}", .empty),
            ("{} x", .notAnObject), ("{\(pair),}", .notAnObject), ("{\(pair)", .notAnObject),
            ("{\(pair) \(pair)}", .notAnObject), ("{\"\(key)\" \"\(privateText)\"}", .notAnObject),
            ("{\"\(key)\": 1}", .notAnObject), ("{\(pair), \(pair)}", .repeatedKey),
            ("{\"\(other)\": \"\(privateText)\"}", .pairsDoNotMatch),
            ("{\"\(key.dropLast(4))\": \"\(privateText)\"}", .badKey),
            ("{\"\(key)A\": \"\(privateText)\"}", .badKey),
            ("{\"\(key.replacing("=", with: ""))\": \"\(privateText)\"}", .badKey),
            ("{\"\(key)\": \"!\(privateText.dropFirst())\"}", .badKey),
            ("{\"\(key)\": \"\"}", .badKey)
        ]
        for (text, fault) in bad {
            #expect(throws: fault, "\(fault)") { try parse(text) }
        }
        for fault in BouncerKeysFile.Fault.allCases { #expect(fault.sentence.hasSuffix(".")) }
    }

    @Test("A file cut at any length is refused and never traps")
    func truncated() throws {
        let text = "{\"\(try publicText)\": \"\(privateText)\"}"
        for length in 0..<text.utf8.count {
            #expect(throws: BouncerKeysFile.Fault.self) { try parse(String(text.prefix(length))) }
        }
    }
}
