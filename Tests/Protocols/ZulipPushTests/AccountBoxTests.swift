import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What is sealed to an account's key (docs/conformance/zulip.md, the specification's own profile).
@Suite("Zulip account box")
struct AccountBoxTests {
    private static let seed: UInt64 = 21

    private func pair(_ byte: UInt8) throws -> X25519KeyPair {
        try X25519KeyPair(privateKey: Secret([UInt8](repeating: byte, count: 32)))
    }

    private func opens(_ bytes: [UInt8], _ pair: X25519KeyPair) -> Bool {
        (try? AccountBox.open(Secret(Base64.encode(bytes)), with: pair)) != nil  // The question itself.
    }

    @Test("A content opens whole and with its pair only: cut, changed or with another pair it does not")
    func content() throws {
        var random = SeededRandom(seed: Self.seed)
        let pair = try pair(3)
        let key = try PushPublicKey(base64: Base64.text(pair.publicKey))
        let plain = Secret(#"{"type":"test"}"#.utf8)
        let sealed = try AccountBox.seal(plain, to: key, using: &random)
        #expect(!(sealed == (try AccountBox.seal(plain, to: key, using: &random))))
        #expect(try AccountBox.open(sealed, with: pair) == plain)
        let bytes = try sealed.reveal { try Base64.decode(Array($0)) }
        #expect(bytes.count == plain.count + AccountBox.overheadBytes)
        #expect(!opens(bytes, try self.pair(4)))
        #expect(!opens(bytes + [0], pair))
        for length in bytes.indices { #expect(!opens(Array(bytes[..<length]), pair), "length \(length)") }
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 8)
            // X25519 does not look at the highest bit of a point; the nonce is made of it, so it counts.
            #expect(!opens(changed, pair), "byte \(index)")
        }
    }

    @Test("A public key reads back from its text; another length, spelling or a weak point is none")
    func publicKey() throws {
        let text = Base64.text(try pair(5).publicKey)
        #expect(try PushPublicKey(base64: text).base64 == text)
        for length in 0..<text.utf8.count {
            #expect(throws: ZulipError(.invalidPushKey), "length \(length)") {
                try PushPublicKey(base64: String(text.prefix(length)))
            }
        }
        // The points of small order of RFC 7748 §6.1, and one of them with the bit set that is not looked at.
        let one = [1] + [UInt8](repeating: 0, count: 31)
        let weak = [[UInt8](repeating: 0, count: 32), one, Array(one.dropLast()) + [0x80]]
        for bytes in weak + [[UInt8](repeating: 1, count: 31), [UInt8](repeating: 1, count: 33)] {
            #expect(throws: ZulipError(.invalidPushKey)) {
                try PushPublicKey(base64: Base64.text(bytes))
            }
        }
        let bare = text.replacing("=", with: "")
        for spelling in [text + "\n", " " + text, bare, bare + "%3D"] {
            #expect(throws: ZulipError(.invalidPushKey)) { try PushPublicKey(base64: spelling) }
        }
    }
}
