import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@testable import RelayProgram

/// What the program reads that no fuzz target can reach, since a program cannot be linked into another.
@Suite("Files of the operator, changed at random", .timeLimit(.minutes(30)))
struct MutationTests {
    private static let text =
        sampleApp + """
                fcm: { service_account: fcm.json, address: auto }
            instances:
              marmot-main:
                protocol: marmot
                apps: [acme]
                key_file: nostr.key
                old_key_files: [old.key]
                relays: ["wss://relay.example.org", "ws://127.0.0.1:7000", "ws://aaaa.onion"]
                formats: [seed, push-v1]
                mode: mutable_alert
                backlog: grace
                proxy: socks5://127.0.0.1:9050
                ca: ca.pem
                bundle: org.acme.chat
            """
    private static let odd = [
        "[", "]", "{", "}", ":", "- ", "~", "null", "0", "-1", "99999999999999999999", "\"", "'", "\\", "&a",
        "*a", "!!binary", "|", "\t", "\n", "\u{0}", "é", "\u{202E}", "wss://", "[::1]", "..", "%00", "#"
    ]

    /// One to four changes: a byte, a piece taken out, a piece doubled, a word put in.
    private func mutate(_ text: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var text = text
        for _ in 0..<Int.random(in: 1...4, using: &random) where !text.isEmpty {
            let start = Int.random(in: 0..<text.count, using: &random)
            let end = min(text.count, start + Int.random(in: 1...24, using: &random))
            switch Int.random(in: 0..<4, using: &random) {
            case 0: text[start] = UInt8.random(in: 0...255, using: &random)
            case 1: text.removeSubrange(start..<end)
            case 2: text.insert(contentsOf: text[start..<end], at: Int.random(in: 0...end, using: &random))
            default: text.insert(contentsOf: (Self.odd.randomElement(using: &random) ?? "").utf8, at: start)
            }
        }
        return text
    }

    @Test("A configuration is read, or refused with a sentence for each fault")
    func configuration() throws {
        _ = try load(Self.text)
        var random = SeededRandom(seed: 3)
        var refused = 0
        for _ in 0..<1_000 {
            let text = String(decoding: mutate(Array(Self.text.utf8), &random), as: UTF8.self)
            do throws(ConfigurationError) {
                _ = try load(text)
            } catch {
                refused += 1
                #expect(!error.faults.isEmpty && error.faults.allSatisfy { !$0.sentence.isEmpty }, "\(text)")
            }
        }
        #expect((500..<1_000).contains(refused))
    }

    @Test("A key file is a key, or refused")
    func keyFile() throws {
        let pair = try Secp256k1KeyPair(secret: Secret([UInt8](repeating: 7, count: 32)))
        let text = NostrKeyFile.text(pair).reveal { Array($0) }
        var random = SeededRandom(seed: 4)
        for _ in 0..<5_000 {
            let bytes = mutate(text, &random)
            guard let read = try? NostrKeyFile.parse(Secret(bytes)) else { continue }
            let digits = NostrKeyFile.text(read).reveal { Array($0.dropLast()) }
            let lower = String(decoding: bytes, as: UTF8.self).lowercased()
            #expect(lower.utf8.filter { !$0.isSpace }.elementsEqual(digits))
        }
    }
}

extension UInt8 {
    fileprivate var isSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
