import PushModel
import Secp256k1Keys
import Testing

@testable import RelayProgram

extension Secp256k1KeyFile {
    /// What is no key, and why.
    static var bad: [(String, Fault)] {
        [
            ("", .notHex), ("0x", .notHex), ("nsec1abc", .notHex),
            (String(repeating: "g", count: 64), .notHex), (String(repeating: "1", count: 63), .notHex),
            (String(repeating: "1", count: 66), .notHex), (String(repeating: "0", count: 64), .badKey),
            (String(repeating: "f", count: 64), .badKey)
        ]
    }

    /// What was written is read again, with or without a line break, in either case.
    static func expectRoundTrip() throws {
        let pair = Secp256k1KeyPair.generate(.live)
        let text = Self.text(pair).reveal { String(decoding: $0, as: UTF8.self) }
        #expect(text.utf8.count == 65)
        for form in [text, String(text.dropLast()), text.uppercased(), text + "\r\n"] {
            #expect(try parse(Secret(form.utf8)).point == pair.point)
        }
    }
}
