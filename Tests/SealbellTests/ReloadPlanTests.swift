import PushModel
import Testing

@testable import sealbell

@Suite("What a reload changes")
struct ReloadPlanTests {
    private static let base = minimal(
        appending: """
            state: /s
            store: { keys: /k }
            listeners:
              public: { serves: [zulip-main], tls: { cert: a, key: b } }
              side: { bind: "127.0.0.1:9", serves: [zulip-main] }
              admin: {}
            """)

    private func plan(_ edited: String) throws -> [ReloadPlan.Change] {
        try ReloadPlan(from: load(Self.base), to: load(edited)).changes
    }

    private func name(_ text: String) throws -> ConfiguredName { try #require(ConfiguredName(text)) }

    @Test("The same file changes nothing")
    func same() throws {
        #expect(try plan(Self.base).isEmpty)
    }

    @Test("Each change in place is named, and nothing else")
    func inPlace() throws {
        func edit(_ old: String, _ new: String) throws -> [ReloadPlan.Change] {
            #expect(Self.base.contains(old))
            return try plan(Self.base.replacing(old, with: new))
        }
        let zulip = try name("zulip-main")
        #expect(try edit("A1B2C3D4E5", "ZZZZZZZZZZ") == [.changeApp(name("acme"))])
        #expect(try edit("keys: bouncer.keys", "keys: other.keys") == [.changeInstance(zulip)])
        #expect(try edit("    keys: b", "    sign_up: open\n    keys: b") == [.signUp(zulip)])
        #expect(
            try edit("    keys: bouncer.keys", "    keys: c\n    sign_up: open")
                == [.changeInstance(zulip), .signUp(zulip)])
        #expect(try edit("cert: a", "cert: c") == [.tls(listener: name("public"))])
        #expect(try edit(", tls: { cert: a, key: b }", "") == [.tls(listener: name("public"))])
        #expect(
            try edit("admin: {}", "admin: { token_file: t }") == [.adminToken(listener: name("admin"))])
        #expect(
            try edit("bind: \"127.0.0.1:9\",", "bind: \"127.0.0.1:9\", trusted_proxies: [10.0.0.1],")
                == [.trustedProxies(listener: name("side"))])
        #expect(try plan(Self.base + "\nlog: { level: debug }") == [.log])
        #expect(try plan(Self.base + "\nlimits: { pushes_per_minute: 5 }") == [.limits])
        #expect(try plan(Self.base + "\nalerts: { gauge: false }") == [.alerts])
        #expect(try plan(Self.base + "\nproxy: http://p:1") == [.proxy])
    }

    @Test("Additions come before removals")
    func addAndRemove() throws {
        let renamed = Self.base.replacing("  acme:", with: "  other:").replacing("[acme]", with: "[other]")
            .replacing("zulip-main", with: "zulip-next")
        #expect(
            try plan(renamed) == [
                .addApp(name("other")), .addInstance(name("zulip-next")), .serves(listener: name("public")),
                .serves(listener: name("side")), .removeInstance(name("zulip-main")),
                .removeApp(name("acme"))
            ])
    }

    @Test("What needs a restart refuses the whole of the new file, and says so for each thing")
    func restarts() throws {
        let edited = Self.base.replacing("state: /s", with: "state: /t")
            .replacing("keys: /k", with: "keys: /l")
            .replacing("127.0.0.1:9", with: "127.0.0.1:10")
            .replacing("  admin: {}", with: "  door: { bind: \"127.0.0.1:11\", serves: [zulip-main] }")
            .replacing("A1B2C3D4E5", with: "ZZZZZZZZZZ")
        let old = try load(Self.base)
        let new = try load(edited)
        do throws(ConfigurationError) {
            _ = try ReloadPlan(from: old, to: new)
            Issue.record("The plan was made.")
        } catch {
            #expect(
                error.faults.map(\.path) == [
                    "state", "store", "listeners.door", "listeners.side.bind", "listeners.admin"
                ])
            #expect(error.faults.allSatisfy { $0.code == .needsRestart && $0.sentence.contains("restart") })
        }
    }

    @Test("A broken new file is an error, so the old configuration stays")
    func broken() throws {
        #expect(throws: ConfigurationError.self) { try load(Self.base + "\nlog: [") }
    }
}
