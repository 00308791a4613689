import PushModel
import Testing

@testable import RelayProgram

@Suite("What a reload cannot change")
struct ReloadRuleTests {
    private static let base = minimal(
        appending: """
            state: /s
            store: { keys: /k }
            listeners:
              public: { serves: [zulip-main], tls: { cert: a, key: b } }
              side: { bind: "127.0.0.1:9", serves: [zulip-main] }
              admin: {}
            """)

    private func check(_ edited: String) throws {
        try ReloadRule.check(load(Self.base), load(edited))
    }

    @Test(
        "What a reload can change is not refused",
        arguments: [
            ("A1B2C3D4E5", "ZZZZZZZZZZ"), ("keys: bouncer.keys", "keys: other.keys"),
            ("    keys: b", "    sign_up: open\n    keys: b"), ("cert: a", "cert: c"),
            (", tls: { cert: a, key: b }", ""), ("admin: {}", "admin: { token_file: t }"),
            ("bind: \"127.0.0.1:9\",", "bind: \"127.0.0.1:9\", trusted_proxies: [10.0.0.1],"),
            ("state: /s", "state: /s\nlog: { level: debug }"),
            ("state: /s", "state: /s\nlimits: { pushes_per_minute: 5 }"),
            ("state: /s", "state: /s\nalerts: { gauge: false }"),
            ("state: /s", "state: /s\nproxy: http://p:1")
        ])
    func inPlace(_ old: String, _ new: String) throws {
        #expect(Self.base.contains(old))
        try check(Self.base.replacing(old, with: new))
    }

    @Test("Apps and instances come and go")
    func addAndRemove() throws {
        try check(
            Self.base.replacing("  acme:", with: "  other:").replacing("[acme]", with: "[other]")
                .replacing("zulip-main", with: "zulip-next"))
    }

    @Test("What needs a restart refuses the whole of the new file, and says so for each thing")
    func restarts() throws {
        let edited =
            Self.base.replacing("state: /s", with: "state: /t")
            .replacing("keys: /k", with: "keys: /l")
            .replacing("127.0.0.1:9", with: "127.0.0.1:10")
            .replacing("  admin: {}", with: "  door: { bind: \"127.0.0.1:11\", serves: [zulip-main] }")
            .replacing("A1B2C3D4E5", with: "ZZZZZZZZZZ")
            + "\nlimits: { connections: 5000, outbox: { rows: 5000 } }"
        let old = try load(Self.base)
        let new = try load(edited)
        do throws(ConfigurationError) {
            try ReloadRule.check(old, new)
            Issue.record("It was not refused.")
        } catch {
            #expect(
                error.faults.map(\.path) == [
                    "state", "store", "limits.connections", "limits.outbox", "listeners.door",
                    "listeners.side.bind", "listeners.admin"
                ])
            #expect(error.faults.allSatisfy { $0.code == .needsRestart && $0.sentence.contains("restart") })
        }
    }

    @Test("A broken new file is an error, so the old configuration stays")
    func broken() throws {
        #expect(throws: ConfigurationError.self) { try load(Self.base + "\nlog: [") }
    }
}
