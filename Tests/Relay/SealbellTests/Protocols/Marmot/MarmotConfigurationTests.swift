import MarmotPush
import NostrIngress
import PushModel
import Testing

@testable import RelayProgram

/// The smallest configuration with a Marmot instance, with `replaced` put in another line's place.
private func marmot(_ replaced: String = "", with line: String = "", appending more: String = "") -> String {
    let instances = """
        instances:
          marmot-main:
            protocol: marmot
            apps: [acme]
            key_file: nostr.key
            relays: ["wss://relay.example.org"]
        """
    return minimal(replaced, with: line, appending: more, instances: instances)
}

private let path = "instances.marmot-main"

@Suite("A Marmot instance in the configuration")
struct MarmotConfigurationTests {
    @Test("Little needs to be said, and the defaults are the sheet's")
    func defaults() throws {
        let configuration = try load(marmot())
        let found = try #require(configuration.instances.first?.marmot)
        #expect(found.bundle == "org.acme.chat" && found.keyFile == "/etc/sealbell/nostr.key")
        #expect(found.relays == ["wss://relay.example.org"] && found.oldKeyFiles.isEmpty)
        #expect(found.formats == Set(TokenFormat.allCases) && found.mode == .silent)
        #expect(found.wakePause == 1 && found.contentMemory == 30)
        #expect(found.cpuPercent == 50 && found.authorPerMinute == 600 && found.selfTest)
        #expect(found.backlog == .live && found.proxy == nil && found.caFile == nil)
        #expect(configuration.listeners.map(\.name.text) == ["admin"])
        #expect(configuration.warnings.isEmpty)
        #expect(configuration.files.contains { $0.content == .nostrKey && $0.path == "\(path).key_file" })
    }

    @Test("All that can be said is read")
    func everything() throws {
        let text = marmot(
            #"relays: ["wss://relay.example.org"]"#,
            with: """
                old_key_files: [old.key]
                    relays: ["wss://relay.example.org", "ws://127.0.0.1:7000", "ws://aaaa.onion"]
                    formats: [seed, push-v1]
                    mode: mutable_alert
                    backlog: grace
                    wake_pause: 0
                    content_memory: 300
                    cpu_percent: 100
                    author_per_minute: 60
                    self_test: false
                    proxy: socks5://127.0.0.1:9050
                    ca: ca.pem
                    bundle: org.acme.chat
                """)
        let found = try #require(try load(text).instances.first?.marmot)
        #expect(found.oldKeyFiles == ["/etc/sealbell/old.key"] && found.relays.count == 3)
        #expect(found.formats == [.seed, .pushV1] && found.mode == .mutableAlert && found.backlog == .grace)
        #expect(found.wakePause == 0 && found.contentMemory == 300)
        #expect(found.cpuPercent == 100 && found.authorPerMinute == 60 && !found.selfTest)
        #expect(found.proxy == SOCKSAddress("socks5://127.0.0.1:9050"))
        #expect(found.caFile == "/etc/sealbell/ca.pem")
    }

    private static let bad: [BadText] = [
        BadText(
            "no key", marmot("key_file: nostr.key", with: "mode: silent"), .missingKey, "\(path).key_file",
            line: 10),
        BadText(
            "no relays", marmot(#"relays: ["wss://relay.example.org"]"#, with: "mode: silent"), .missingKey,
            "\(path).relays", line: 10),
        BadText(
            "an hour and more",
            marmot("key_file: nostr.key", with: "key_file: nostr.key\n    wake_pause: 3601"), .outOfBounds,
            "\(path).wake_pause", line: 13),
        BadText(
            "no core at all", marmot("key_file: nostr.key", with: "key_file: nostr.key\n    cpu_percent: 0"),
            .outOfBounds, "\(path).cpu_percent", line: 13),
        BadText(
            "an empty list", marmot(#"["wss://relay.example.org"]"#, with: "[]"), .outOfBounds,
            "\(path).relays", line: 13),
        BadText(
            "a web address", marmot("wss://relay", with: "https://relay"), .badValue, "\(path).relays",
            line: 13, says: "wss://"),
        BadText(
            "a relay without TLS", marmot("wss://relay", with: "ws://relay"), .badValue, "\(path).relays",
            line: 13, says: "loopback"),
        BadText(
            "an onion relay without a proxy", marmot("wss://relay.example.org", with: "ws://aaaa.onion"),
            .conflict, "\(path).relays", line: 13, says: "proxy"),
        BadText(
            "a relay twice",
            marmot(#""wss://relay.example.org""#, with: #""wss://a.example", "wss://A.example:443""#),
            .conflict, "\(path).relays", line: 13),
        BadText(
            "a format misspelt",
            marmot("key_file: nostr", with: "formats: [mip05-1048]\n    key_file: nostr"), .badValue,
            "\(path).formats", line: 12, says: "Did you mean mip05-1084?"),
        BadText(
            "no format", marmot("key_file: nostr", with: "formats: []\n    key_file: nostr"), .badValue,
            "\(path).formats", line: 12),
        BadText(
            "a mode misspelt", marmot("key_file: nostr", with: "mode: mutable-alert\n    key_file: nostr"),
            .badValue, "\(path).mode", line: 12, says: "mutable_alert"),
        BadText(
            "an HTTP proxy",
            marmot("key_file: nostr", with: "proxy: http://127.0.0.1:1\n    key_file: nostr"), .badValue,
            "\(path).proxy", line: 12, says: "socks5://"),
        BadText(
            "a proxy with a password",
            marmot("key_file: nostr", with: "proxy: socks5://a:b@h:1\n    key_file: nostr"), .badValue,
            "\(path).proxy", line: 12),
        BadText(
            "another protocol's key", marmot("key_file: nostr", with: "sign_up: open\n    key_file: nostr"),
            .unknownKey, "\(path).sign_up", line: 12),
        BadText(
            "an unknown bundle", marmot("key_file: nostr", with: "bundle: org.other\n    key_file: nostr"),
            .conflict, "\(path).bundle", line: 12),
        BadText(
            "two bundles and no word", marmot("[org.acme.chat]", with: "[org.acme.chat, org.acme.talk]"),
            .missingKey, "\(path).bundle", line: 10, says: "several"),
        BadText(
            "served by a listener",
            marmot(appending: "listeners:\n  public: { serves: [marmot-main] }\n  admin: {}"), .conflict,
            "listeners.public.serves", line: 15, says: "Nostr relays")
    ]

    @Test("What is wrong is said by path and line", arguments: bad)
    func faulty(_ bad: BadText) throws { try bad.expectAlone() }

    @Test("A second app is refused, for a trigger names none")
    func twoApps() {
        let text = marmot("instances:", with: "  other:\n    fcm: { service_account: a.json }\ninstances:")
            .replacing("apps: [acme]", with: "apps: [acme, other]")
        #expect(faults(text).map(\.path) == ["\(path).apps"])
    }

    @Test("Beside Zulip, the standard listener serves Zulip alone")
    func beside() throws {
        let text = marmot(
            "instances:",
            with: "instances:\n  zulip-main: { protocol: zulip, apps: [acme], keys: bouncer.keys }")
        let configuration = try load(text)
        #expect(configuration.listeners.map { $0.serves.map(\.text) } == [[], ["zulip-main"]])
    }
}

@Suite("The key file of a notification server")
struct NostrKeyFileTests {
    @Test("What was written is read again, with or without a line break, in either case")
    func roundTrip() throws { try NostrKeyFile.expectRoundTrip() }

    @Test("What is no key is refused", arguments: NostrKeyFile.bad)
    func bad(_ text: String, _ expected: NostrKeyFile.Fault) {
        #expect(throws: expected) { try NostrKeyFile.parse(Secret(text.utf8)) }
    }
}
