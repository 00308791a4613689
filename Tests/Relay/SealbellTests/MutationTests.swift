import PushModel
import PushTesting
import Testing
import WireFormats

@testable import RelayProgram

/// What the program reads that no fuzz target can reach, since a program cannot be linked into another.
@Suite("Files of the operator, changed at random", .timeLimit(.minutes(30)))
struct MutationTests {
    private static let fcm = "    fcm: { service_account: fcm.json, address: auto }\ninstances:\n"
    /// Of each protocol that is reached through a network of its own: all that can be said.
    private static let instances = [
        """
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
        """,
        """
          session-main:
            protocol: session
            apps: [acme]
            onion_key: onion.key
            oxend: tcp://oxend.example.org:22029
            oxend_key: aBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaBaB
            services: { apns: acme, firebase: acme }
            subkeys: true
            plain_http: false
            metadata: deployed
            fcm_high: all
        """,
        """
          status-main:
            protocol: status
            apps: [acme]
            fcm_app: acme
            bundle: org.acme.chat
            key_file: status.key
            waku: { url: "https://node.acme.example:8646/", ca: node.pem }
            gorush: { url: "http://localhost:8088/push/" }
            compatibility: status-go
            registrations_per_minute: 60
            queries_per_minute: 600
            requests_per_minute: 6000
        """,
        """
          status-gorush:
            protocol: status
            bundle: org.acme.chat
            key_file: status.key
            waku: { url: "https://node.acme.example:8646/", ca: node.pem }
            gorush: { url: "https://gorush.acme.example/push/", ca: gorush.pem }
            requests_per_minute: 6000
        """
    ]
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

    @Test("A configuration is read, or refused with a sentence for each fault", arguments: instances)
    func configuration(instance: String) throws {
        let whole = sampleApp + Self.fcm + instance
        _ = try load(whole)
        var random = SeededRandom(seed: 3)
        var refused = 0
        for _ in 0..<1_000 {
            let text = String(decoding: mutate(Array(whole.utf8), &random), as: UTF8.self)
            do throws(ConfigurationError) {
                _ = try load(text)
            } catch {
                refused += 1
                #expect(!error.faults.isEmpty && error.faults.allSatisfy { !$0.sentence.isEmpty }, "\(text)")
            }
        }
        #expect((500..<1_000).contains(refused))
    }

    /// What reads a key file, and writes what it has read.
    private static let keyFiles: [@Sendable (Secret) throws -> Secret] = [
        { NostrKeyFile.text(try NostrKeyFile.parse($0)) }, { StatusKeyFile.text(try StatusKeyFile.parse($0)) }
    ]

    @Test("A key file is a key, or refused", arguments: keyFiles.indices)
    func keyFile(at place: Int) throws {
        let rewritten = Self.keyFiles[place]
        let text = Secret([UInt8](repeating: 7, count: 32)).hexLine
        #expect(try rewritten(text) == text)
        var random = SeededRandom(seed: 4)
        for _ in 0..<5_000 {
            let bytes = mutate(text.reveal { Array($0) }, &random)
            guard let digits = try? rewritten(Secret(bytes)).reveal({ Array($0.dropLast()) }) else {
                continue
            }
            let lower = String(decoding: bytes, as: UTF8.self).lowercased()
            #expect(lower.utf8.filter { !$0.isSpace }.elementsEqual(digits))
        }
    }
}

extension UInt8 {
    fileprivate var isSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
