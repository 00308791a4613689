import PushModel
import PushTesting
import Testing

@testable import RelayProgram

/// A text and the fault it must have.
struct BadText: Sendable, CustomTestStringConvertible {
    let name: String
    let text: String
    let code: ConfigurationFault.Code
    let path: String
    let line: Int?
    /// What the sentence must mention.
    var mention = ""

    var testDescription: String { name }

    init(
        _ name: String, _ text: String, _ code: ConfigurationFault.Code, _ path: String, line: Int?,
        says mention: String = ""
    ) {
        self.name = name
        self.text = text
        self.code = code
        self.path = path
        self.line = line
        self.mention = mention
    }
}

private let apns = "apps.acme.apns"
private let zulip = "instances.zulip-main"

/// Shape, names and keys.
private let shapes: [BadText] = [
    BadText("root list", "- a", .wrongShape, "", line: 1),
    BadText("root text", "hello", .wrongShape, "", line: 1),
    BadText("tab", minimal(appending: "log:\n\tlevel: info"), .notYAML, "", line: 14),
    BadText("open bracket", minimal(appending: "log: [a"), .notYAML, "", line: nil),
    BadText("two documents", minimal(appending: "---\nlog: {}"), .notYAML, "", line: 13),
    BadText("undefined alias", minimal(appending: "log: *x"), .notYAML, "", line: 13),
    BadText(
        "same key twice", minimal(appending: "log: {}\nlog: {}"), .duplicateKey, "", line: 14,
        says: "The key log stands twice in one mapping, first in line 13"),
    BadText(
        "same name twice", minimal(appending: "log:\n  level: info\n  # so\n  \"level\" : debug"),
        .duplicateKey,
        "", line: 16, says: "The key level stands twice in one mapping, first in line 14"),
    BadText(
        "same key in one line", minimal(appending: "log: { level: info, level: debug }"), .duplicateKey, "",
        line: 13, says: "The key level stands twice"),
    BadText("deep", minimal(appending: "log: [[[[[[[[[[a]]]]]]]]]]"), .wrongShape, "", line: 13),
    BadText(
        "unknown root key", minimal(appending: "listener: {}"), .unknownKey, "listener", line: 13,
        says: "listeners"),
    BadText(
        "unknown far key", minimal(appending: "zzzzzz: 1"), .unknownKey, "zzzzzz", line: 13, says: "instances"
    ),
    BadText(
        "swapped letters", minimal("team:", with: "taem: A1B2C3D4E5\n      team:"), .unknownKey,
        "\(apns).taem",
        line: 4, says: "team"),
    BadText("app as text", minimal(appending: "log: info"), .wrongShape, "log", line: 13),
    BadText("list of mappings", minimal("[acme]", with: "[{a: b}]"), .wrongShape, "\(zulip).apps", line: 11),
    BadText("list as text", minimal("[acme]", with: "acme"), .wrongShape, "\(zulip).apps", line: 11),
    BadText("name in capitals", minimal("  acme:", with: "  ACME:"), .badName, "apps.ACME", line: 2),
    BadText("empty value", minimal("team: A1B2C3D4E5", with: "team:"), .badValue, "\(apns).team", line: 4),
    BadText("no team", minimal("team: A1B2C3D4E5", with: "voip: true"), .missingKey, "\(apns).team", line: 4),
    BadText("no apps", "instances: {}", .missingKey, "apps", line: 1),
    BadText("no instances", "apps: {}", .missingKey, "instances", line: 1),
    BadText("nothing at all", "", .missingKey, "instances", line: 1)
]

/// Values.
private let values: [BadText] = [
    BadText("short team", minimal("A1B2C3D4E5", with: "A1B2"), .badValue, "\(apns).team", line: 4),
    BadText("small letters", minimal("F6G7H8I9J0", with: "f6g7h8i9j0"), .badValue, "\(apns).key_id", line: 5),
    BadText(
        "bundle with suffix", minimal("org.acme.chat", with: "org.acme.voip"), .badValue, "\(apns).bundles",
        line: 7),
    BadText(
        "bundle with space", minimal("org.acme.chat", with: "a b"), .badValue, "\(apns).bundles", line: 7),
    BadText("no bundle", minimal("[org.acme.chat]", with: "[]"), .badValue, "\(apns).bundles", line: 7),
    BadText(
        "bundle twice", minimal("[org.acme.chat]", with: "[a, a]"), .conflict, "\(apns).bundles", line: 7),
    BadText(
        "environment", minimal("      key_id", with: "      environment: prodution\n      key_id"), .badValue,
        "\(apns).environment", line: 5, says: "Did you mean production?"),
    BadText(
        "voip", minimal("      key_id", with: "      voip: yes\n      key_id"), .badValue, "\(apns).voip",
        line: 5),
    BadText(
        "url without https", minimal("      key_id", with: "      url: http://a\n      key_id"), .badValue,
        "\(apns).url", line: 5),
    BadText(
        "url with path", minimal("      key_id", with: "      url: https://a/b\n      key_id"), .badValue,
        "\(apns).url", line: 5),
    BadText(
        "level", minimal(appending: "log: { level: wraning }"), .badValue, "log.level", line: 13,
        says: "warning"),
    BadText(
        "rows as word", minimal(appending: "limits: { outbox: { rows: many } }"), .badValue,
        "limits.outbox.rows",
        line: 13),
    BadText(
        "rows too few", minimal(appending: "limits: { outbox: { rows: 1 } }"), .outOfBounds,
        "limits.outbox.rows",
        line: 13),
    BadText(
        "bytes", minimal(appending: "limits: { outbox: { bytes: 99999 TiB } }"), .outOfBounds,
        "limits.outbox.bytes",
        line: 13),
    BadText(
        "negative", minimal(appending: "limits: { connections: -1 }"), .badValue, "limits.connections",
        line: 13),
    BadText("proxy with password", minimal(appending: "proxy: http://u:p@h:1"), .badValue, "proxy", line: 13),
    BadText(
        "webhook alone", minimal(appending: "alerts: { webhook: { url: https://a/ } }"), .missingKey,
        "alerts.webhook.secret_file", line: 13),
    BadText(
        "mail by name", minimal(appending: "alerts: { mail: { command: [mail] } }"), .badValue,
        "alerts.mail.command", line: 13),
    BadText(
        "mail to two", minimal(appending: "alerts: { mail: { command: [/bin/mail], to: \"a@b,c@d\" } }"),
        .badValue, "alerts.mail.to", line: 13),
    BadText(
        "mail with a second head",
        minimal(appending: "alerts: { mail: { command: [/bin/mail], to: \"a@b\\nBcc: c@d\" } }"),
        .badValue, "alerts.mail.to", line: 13),
    BadText(
        "huge alert",
        minimal("  acme:", with: "  acme:\n    fallback: { title: \(String(repeating: "x", count: 500)) }"),
        .tooLarge, "apps.acme.fallback", line: 3),
    BadText(
        "silent alert", minimal("  acme:", with: "  acme:\n    fallback: { sound: default }"), .missingKey,
        "apps.acme.fallback", line: 3),
    BadText(
        "two titles", minimal("  acme:", with: "  acme:\n    fallback: { title: a, title_loc_key: b }"),
        .conflict,
        "apps.acme.fallback.title_loc_key", line: 3),
    BadText(
        "password in the URL", minimal(appending: "store: { url: postgres://u:hunter2@h/db }"), .badValue,
        "store.url", line: 13, says: "store.password_file"),
    BadText(
        "password behind the URL",
        minimal(appending: "store: { url: \"postgresql://u@h/db?password=hunter2\" }"), .badValue,
        "store.url",
        line: 13, says: "store.password_file"),
    BadText(
        "no such option of libpq", minimal(appending: "store: { url: \"postgresql://u@h/db?sslmod=x\" }"),
        .badValue, "store.url", line: 13, says: "postgresql://USER@HOST/DATABASE"),
    BadText(
        "two hosts and three ports",
        minimal(appending: "store: { url: \"postgresql://u@a,b/db?port=1,2,3\" }"), .badValue, "store.url",
        line: 13),
    BadText(
        "password of SQLite",
        minimal(appending: "store: { url: \"sqlite:a.sqlite\", password_file: p }"), .conflict,
        "store.password_file", line: 13),
    BadText("memory", minimal(appending: "store: { url: \"memory:\" }"), .conflict, "store.url", line: 13),
    BadText("mysql", minimal(appending: "store: { url: \"mysql://x\" }"), .badValue, "store.url", line: 13),
    BadText(
        "no host", minimal("    keys", with: "    sign_up: allow-list\n    keys"), .missingKey,
        "\(zulip).hosts",
        line: 10),
    BadText(
        "bad host", minimal("    keys", with: "    sign_up: allow-list\n    hosts: [https://a.b]\n    keys"),
        .badValue, "\(zulip).hosts", line: 13),
    BadText(
        "hosts for nothing", minimal("    keys", with: "    hosts: [a.b]\n    keys"), .conflict,
        "\(zulip).hosts",
        line: 12)
]

/// References, listeners, protocols.
private let crossings: [BadText] = [
    BadText(
        "no such app", minimal("[acme]", with: "[acmee]"), .unknownReference, "\(zulip).apps", line: 11,
        says: "Did you mean acme?"),
    BadText("app twice", minimal("[acme]", with: "[acme, acme]"), .conflict, "\(zulip).apps", line: 11),
    BadText(
        "fcm_app without fcm", minimal("    keys", with: "    fcm_app: acme\n    keys"), .conflict,
        "\(zulip).fcm_app", line: 12),
    BadText(
        "fcm_app of nobody", minimal("    keys", with: "    fcm_app: other\n    keys"), .unknownReference,
        "\(zulip).fcm_app", line: 12),
    BadText(
        "unbuilt protocol", minimal("protocol: zulip", with: "protocol: gorush\n    bare_path: true"),
        .notBuiltYet, "\(zulip).protocol", line: 10),
    BadText(
        "no such protocol", minimal("protocol: zulip", with: "protocol: zullip"), .badValue,
        "\(zulip).protocol",
        line: 10),
    BadText(
        "no protocol", minimal("    protocol: zulip\n", with: ""), .missingKey, "\(zulip).protocol",
        line: 10),
    BadText(
        "no keys", minimal("    keys: bouncer.keys", with: "    sign_up: open"), .missingKey, "\(zulip).keys",
        line: 10),
    BadText(
        "huawei", minimal("  acme:", with: "  acme:\n    huawei: {}"), .notBuiltYet, "apps.acme.huawei",
        line: 3),
    BadText(
        "one bundle, two apps",
        minimal(
            "instances:",
            with: """
                  twin:
                    apns: { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: b, bundles: [org.acme.chat] }
                instances:
                """
        ).replacing("[acme]", with: "[acme, twin]"),
        .conflict, "\(zulip).apps", line: 9),
    BadText(
        "serves nobody", minimal(appending: "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip] } }"),
        .unknownReference, "listeners.a.serves", line: 13),
    BadText(
        "no serves beside another",
        minimal(
            appending: """
                listeners:
                  a: { bind: "127.0.0.1:1" }
                  b: { bind: "127.0.0.1:2", serves: [zulip-main] }
                """),
        .missingKey, "listeners.a.serves", line: 14),
    BadText(
        "no bind", minimal(appending: "listeners: { a: { serves: [zulip-main] } }"), .missingKey,
        "listeners.a.bind", line: 13),
    BadText(
        "bind by name", minimal(appending: "listeners: { a: { bind: \"host:1\", serves: [zulip-main] } }"),
        .badValue, "listeners.a.bind", line: 13),
    BadText(
        "port", minimal(appending: "listeners: { a: { bind: \"127.0.0.1:65536\", serves: [zulip-main] } }"),
        .badValue, "listeners.a.bind", line: 13),
    BadText(
        "origin", minimal(appending: "listeners:\n  origin: { bind: \"127.0.0.1:8490\" }"), .conflict,
        "listeners.origin", line: 14),
    BadText(
        "admin serves", minimal(appending: "listeners: { admin: { serves: [zulip-main] } }"), .conflict,
        "listeners.admin.serves", line: 13),
    BadText(
        "admin in the open", minimal(appending: "listeners: { admin: { bind: \"0.0.0.0:1\" } }"), .missingKey,
        "listeners.admin.token_file", line: 13),
    BadText(
        "token on a public door",
        minimal(
            appending: "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip-main], token_file: t } }"),
        .conflict, "listeners.a.token_file", line: 13),
    BadText(
        "half of TLS",
        minimal(
            appending: "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip-main], tls: { cert: c } } }"),
        .missingKey, "listeners.a.tls.key", line: 13),
    BadText(
        "bad proxy address",
        minimal(appending: "listeners: { public: { serves: [zulip-main], trusted_proxies: [10.0.0.0/33] } }"),
        .badValue, "listeners.public.trusted_proxies", line: 13),
    BadText(
        "one address twice",
        minimal(
            appending: "listeners:\n  public: { serves: [zulip-main] }\n  admin: { bind: \"127.0.0.1:8480\" }"
        ),
        .conflict, "listeners.admin.bind", line: 15),
    BadText(
        "wildcard and address",
        minimal(
            appending: """
                listeners:
                  a: { bind: "0.0.0.0:9", serves: [zulip-main] }
                  admin: { bind: "127.0.0.1:9" }
                """),
        .conflict, "listeners.admin.bind", line: 15),
    BadText("nobody serves it", minimal(appending: "listeners: { admin: {} }"), .conflict, zulip, line: 10),
    BadText(
        "two bouncers on one door",
        minimal(appending: "  second: { protocol: zulip, apps: [acme], keys: b }"),
        .conflict, "listeners.public.serves", line: nil)
]

@Suite("Refusing a configuration")
struct ConfigurationFaultTests {
    @Test("Each bad text has the fault that points at it", arguments: shapes + values + crossings)
    func bad(_ bad: BadText) throws {
        let found = faults(bad.text)
        let fault = try #require(
            found.first { $0.code == bad.code && $0.path == bad.path },
            "found \(found.map { "\($0.code) \($0.path)" })")
        if let line = bad.line { #expect(fault.line == line) }
        #expect(fault.sentence.contains(bad.mention))
        for fault in found { #expect(fault.sentence.hasSuffix(".") || fault.sentence.hasSuffix("?")) }
    }

    @Test("All faults of a file are told at once, in the file's order")
    func all() {
        let found = faults(
            minimal("A1B2C3D4E5", with: "nope", appending: "log: { level: loud }").replacing(
                "[acme]", with: "[x]"))
        #expect(found.map(\.line) == [4, 11, 13])
    }

    @Test("A thousand faults are told as fifty and a number")
    func bounded() {
        let text = minimal(appending: (0..<1000).map { "wrong\($0): 1\n" }.joined())
        do throws(ConfigurationError) {
            _ = try load(text)
            Issue.record("The text was taken.")
        } catch {
            #expect(error.faults.count == 50 && error.untold == 950)
            #expect(error.lines.last == "and 950 more")
            #expect(error.lines.first?.hasPrefix("configuration:13: wrong0: ") == true)
        }
    }

    @Test("No fault repeats a value", arguments: shapes + values + crossings)
    func silent(_ bad: BadText) {
        // Wherever a value stands, a secret may have slipped in: plant one in every scalar of the bad text.
        let canary = "cAnArY0123"
        var text = bad.text
        for word in [
            "A1B2C3D4E5", "apns.p8", "bouncer.keys", "hunter2", "org.acme.chat", "session", "https://a"
        ] {
            text = text.replacing(word, with: canary)
        }
        do throws(ConfigurationError) {
            _ = try load(text)
        } catch {
            for line in error.lines { #expect(!line.contains(canary)) }
            #expect(!"\(error)".contains(canary))
        }
    }

    @Test("A key that is no plain word is not repeated either")
    func secretKey() {
        let found = faults(minimal(appending: "\"-----BEGIN KEY----- abc\": 1"))
        #expect(found.map(\.path) == ["‹key›"])
    }

    @Test("Aliases that unfold without end are refused")
    func unfolding() {
        var text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
        for level in 1...6 {
            text +=
                "a\(level): &a\(level) ["
                + Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ",") + "]\n"
        }
        #expect(faults(text).map(\.code) == [.fileTooLarge])
    }

    @Test("A file of more than 1 MiB, an absent one, a folder and one that is no text are refused")
    func files() throws {
        func code(_ file: String) -> ConfigurationFault.Code? {
            do throws(ConfigurationError) {
                _ = try ConfigurationLoader.load(ConfigurationRequest(file: file), facts())
                return nil
            } catch {
                return error.faults.first?.code
            }
        }
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/large", [UInt8](repeating: 0x20, count: 1 << 20 | 1), replacing: false)
        try writeFile(folder.path + "/latin", [0xE4, 0x3A, 0x20], replacing: false)
        #expect(code(folder.path + "/large") == .fileTooLarge)
        #expect(code(folder.path + "/latin") == .notYAML)
        #expect(code(folder.path + "/absent") == .noFile)
        #expect(code(folder.path) == .unreadableFile)
    }

    @Test("Without a file and without --sandbox the way on is told")
    func noFile() {
        #expect(throws: ConfigurationError.self) {
            try ConfigurationLoader.load(ConfigurationRequest(file: nil), facts())
        }
    }
}
