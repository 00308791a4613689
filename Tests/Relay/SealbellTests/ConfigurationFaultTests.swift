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

    /// The smallest configuration with these lines behind it, which begin with line 13.
    fileprivate static func behind(
        _ name: String, _ more: String, _ code: ConfigurationFault.Code, _ path: String, line: Int? = 13,
        says mention: String = ""
    ) -> BadText { BadText(name, minimal(appending: more), code, path, line: line, says: mention) }

    /// The smallest configuration with other words in the place of some.
    fileprivate static func instead(
        _ name: String, _ replaced: String, with words: String, _ code: ConfigurationFault.Code,
        _ path: String, line: Int?, says mention: String = ""
    ) -> BadText { BadText(name, minimal(replaced, with: words), code, path, line: line, says: mention) }

    /// The text has this fault and no other; returns what is said of it.
    @discardableResult
    func expectAlone(at place: SourceLocation = #_sourceLocation) throws -> String {
        let found = faults(text)
        #expect(found.map(\.code) == [code], "\(name)", sourceLocation: place)
        #expect(found.map(\.path) == [path], "\(name)", sourceLocation: place)
        let fault = try #require(found.first, sourceLocation: place)
        if let line { #expect(fault.line == line, "\(name)", sourceLocation: place) }
        #expect(fault.sentence.contains(mention) || mention.isEmpty, sourceLocation: place)
        return fault.sentence
    }
}

private let apns = "apps.acme.apns"
private let zulip = "instances.zulip-main"

/// Shape, names and keys.
private let shapes: [BadText] = [
    BadText("root list", "- a", .wrongShape, "", line: 1),
    BadText("root text", "hello", .wrongShape, "", line: 1),
    .behind("tab", "log:\n\tlevel: info", .notYAML, "", line: 14),
    .behind("open bracket", "log: [a", .notYAML, "", line: nil),
    .behind("two documents", "---\nlog: {}", .notYAML, ""),
    .behind("undefined alias", "log: *x", .notYAML, ""),
    .behind(
        "same key twice", "log: {}\nlog: {}", .duplicateKey, "", line: 14,
        says: "The key log stands twice in one mapping, first in line 13"),
    .behind(
        "same name twice", "log:\n  level: info\n  # so\n  \"level\" : debug", .duplicateKey, "", line: 16,
        says: "The key level stands twice in one mapping, first in line 14"),
    .behind(
        "same key in one line", "log: { level: info, level: debug }", .duplicateKey, "",
        says: "The key level stands twice"),
    .behind("deep", "log: [[[[[[[[[[a]]]]]]]]]]", .wrongShape, ""),
    .behind("unknown root key", "listener: {}", .unknownKey, "listener", says: "listeners"),
    .behind("unknown far key", "zzzzzz: 1", .unknownKey, "zzzzzz", says: "instances"),
    .instead(
        "swapped letters", "team:", with: "taem: A1B2C3D4E5\n      team:", .unknownKey, "\(apns).taem",
        line: 4, says: "team"),
    .behind("app as text", "log: info", .wrongShape, "log"),
    .instead("list of mappings", "[acme]", with: "[{a: b}]", .wrongShape, "\(zulip).apps", line: 11),
    .instead("list as text", "[acme]", with: "acme", .wrongShape, "\(zulip).apps", line: 11),
    .instead("name in capitals", "  acme:", with: "  ACME:", .badName, "apps.ACME", line: 2),
    .instead("empty value", "team: A1B2C3D4E5", with: "team:", .badValue, "\(apns).team", line: 4),
    .instead("no team", "team: A1B2C3D4E5", with: "voip: true", .missingKey, "\(apns).team", line: 4),
    BadText("no apps", "instances: {}", .missingKey, "apps", line: 1),
    BadText("no instances", "apps: {}", .missingKey, "instances", line: 1),
    BadText("nothing at all", "", .missingKey, "instances", line: 1)
]

/// Values.
private let values: [BadText] = [
    .instead("short team", "A1B2C3D4E5", with: "A1B2", .badValue, "\(apns).team", line: 4),
    .instead("small letters", "F6G7H8I9J0", with: "f6g7h8i9j0", .badValue, "\(apns).key_id", line: 5),
    .instead(
        "bundle with suffix", "org.acme.chat", with: "org.acme.voip", .badValue, "\(apns).bundles", line: 7),
    .instead("bundle with space", "org.acme.chat", with: "a b", .badValue, "\(apns).bundles", line: 7),
    .instead("no bundle", "[org.acme.chat]", with: "[]", .badValue, "\(apns).bundles", line: 7),
    .instead("bundle twice", "[org.acme.chat]", with: "[a, a]", .conflict, "\(apns).bundles", line: 7),
    .instead(
        "environment", "      key_id", with: "      environment: prodution\n      key_id", .badValue,
        "\(apns).environment", line: 5, says: "Did you mean production?"),
    .instead(
        "voip", "      key_id", with: "      voip: yes\n      key_id", .badValue, "\(apns).voip", line: 5),
    .instead(
        "url without https", "      key_id", with: "      url: http://a\n      key_id", .badValue,
        "\(apns).url", line: 5),
    .instead(
        "url with path", "      key_id", with: "      url: https://a/b\n      key_id", .badValue,
        "\(apns).url", line: 5),
    .behind("level", "log: { level: wraning }", .badValue, "log.level", says: "warning"),
    .behind("rows as word", "limits: { outbox: { rows: many } }", .badValue, "limits.outbox.rows"),
    .behind("rows too few", "limits: { outbox: { rows: 1 } }", .outOfBounds, "limits.outbox.rows"),
    .behind("bytes", "limits: { outbox: { bytes: 99999 TiB } }", .outOfBounds, "limits.outbox.bytes"),
    .behind("negative", "limits: { connections: -1 }", .badValue, "limits.connections"),
    .behind("proxy with password", "proxy: http://u:p@h:1", .badValue, "proxy"),
    .behind(
        "webhook alone", "alerts: { webhook: { url: https://a/ } }", .missingKey, "alerts.webhook.secret_file"
    ),
    .behind("mail by name", "alerts: { mail: { command: [mail] } }", .badValue, "alerts.mail.command"),
    .behind(
        "mail to two", "alerts: { mail: { command: [/bin/mail], to: \"a@b,c@d\" } }", .badValue,
        "alerts.mail.to"),
    .behind(
        "mail with a second head", "alerts: { mail: { command: [/bin/mail], to: \"a@b\\nBcc: c@d\" } }",
        .badValue, "alerts.mail.to"),
    .instead(
        "huge alert", "  acme:",
        with: "  acme:\n    fallback: { title: \(String(repeating: "x", count: 500)) }", .tooLarge,
        "apps.acme.fallback", line: 3),
    .instead(
        "silent alert", "  acme:", with: "  acme:\n    fallback: { sound: default }", .missingKey,
        "apps.acme.fallback", line: 3),
    .instead(
        "two titles", "  acme:", with: "  acme:\n    fallback: { title: a, title_loc_key: b }", .conflict,
        "apps.acme.fallback.title_loc_key", line: 3),
    .behind(
        "password in the URL", "store: { url: postgres://u:hunter2@h/db }", .badValue, "store.url",
        says: "store.password_file"),
    .behind(
        "password behind the URL", "store: { url: \"postgresql://u@h/db?password=hunter2\" }", .badValue,
        "store.url", says: "store.password_file"),
    .behind(
        "no such option of libpq", "store: { url: \"postgresql://u@h/db?sslmod=x\" }", .badValue, "store.url",
        says: "postgresql://USER@HOST/DATABASE"),
    .behind(
        "two hosts and three ports", "store: { url: \"postgresql://u@a,b/db?port=1,2,3\" }", .badValue,
        "store.url"),
    .behind(
        "password of SQLite", "store: { url: \"sqlite:a.sqlite\", password_file: p }", .conflict,
        "store.password_file"),
    .behind("memory", "store: { url: \"memory:\" }", .conflict, "store.url"),
    .behind("mysql", "store: { url: \"mysql://x\" }", .badValue, "store.url"),
    .instead(
        "no host", "    keys", with: "    sign_up: allow-list\n    keys", .missingKey, "\(zulip).hosts",
        line: 10),
    .instead(
        "bad host", "    keys", with: "    sign_up: allow-list\n    hosts: [https://a.b]\n    keys",
        .badValue, "\(zulip).hosts", line: 13),
    .instead(
        "hosts for nothing", "    keys", with: "    hosts: [a.b]\n    keys", .conflict, "\(zulip).hosts",
        line: 12)
]

/// References, listeners, protocols.
private let crossings: [BadText] = [
    .instead(
        "no such app", "[acme]", with: "[acmee]", .unknownReference, "\(zulip).apps", line: 11,
        says: "Did you mean acme?"),
    .instead("app twice", "[acme]", with: "[acme, acme]", .conflict, "\(zulip).apps", line: 11),
    .instead(
        "fcm_app without fcm", "    keys", with: "    fcm_app: acme\n    keys", .conflict, "\(zulip).fcm_app",
        line: 12),
    .instead(
        "fcm_app of nobody", "    keys", with: "    fcm_app: other\n    keys", .unknownReference,
        "\(zulip).fcm_app", line: 12),
    .instead(
        "unbuilt protocol", "protocol: zulip", with: "protocol: gorush\n    bare_path: true", .notBuiltYet,
        "\(zulip).protocol", line: 10),
    .instead(
        "no such protocol", "protocol: zulip", with: "protocol: zullip", .badValue, "\(zulip).protocol",
        line: 10),
    .instead("no protocol", "    protocol: zulip\n", with: "", .missingKey, "\(zulip).protocol", line: 10),
    .instead(
        "no keys", "    keys: bouncer.keys", with: "    sign_up: open", .missingKey, "\(zulip).keys", line: 10
    ),
    .instead("huawei", "  acme:", with: "  acme:\n    huawei: {}", .notBuiltYet, "apps.acme.huawei", line: 3),
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
    .behind(
        "serves nobody", "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip] } }", .unknownReference,
        "listeners.a.serves"),
    BadText(
        "no serves beside another",
        minimal(
            appending: """
                listeners:
                  a: { bind: "127.0.0.1:1" }
                  b: { bind: "127.0.0.1:2", serves: [zulip-main] }
                """),
        .missingKey, "listeners.a.serves", line: 14),
    .behind("no bind", "listeners: { a: { serves: [zulip-main] } }", .missingKey, "listeners.a.bind"),
    .behind(
        "bind by name", "listeners: { a: { bind: \"host:1\", serves: [zulip-main] } }", .badValue,
        "listeners.a.bind"),
    .behind(
        "port", "listeners: { a: { bind: \"127.0.0.1:65536\", serves: [zulip-main] } }", .badValue,
        "listeners.a.bind"),
    .behind(
        "origin", "listeners:\n  origin: { bind: \"127.0.0.1:8490\" }", .conflict, "listeners.origin",
        line: 14),
    .behind(
        "admin serves", "listeners: { admin: { serves: [zulip-main] } }", .conflict,
        "listeners.admin.serves"),
    .behind(
        "admin in the open", "listeners: { admin: { bind: \"0.0.0.0:1\" } }", .missingKey,
        "listeners.admin.token_file"),
    .behind(
        "token on a public door",
        "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip-main], token_file: t } }", .conflict,
        "listeners.a.token_file"),
    .behind(
        "half of TLS", "listeners: { a: { bind: \"127.0.0.1:1\", serves: [zulip-main], tls: { cert: c } } }",
        .missingKey, "listeners.a.tls.key"),
    .behind(
        "bad proxy address",
        "listeners: { public: { serves: [zulip-main], trusted_proxies: [10.0.0.0/33] } }", .badValue,
        "listeners.public.trusted_proxies"),
    .behind(
        "one address twice",
        "listeners:\n  public: { serves: [zulip-main] }\n  admin: { bind: \"127.0.0.1:8480\" }", .conflict,
        "listeners.admin.bind", line: 15),
    BadText(
        "wildcard and address",
        minimal(
            appending: """
                listeners:
                  a: { bind: "0.0.0.0:9", serves: [zulip-main] }
                  admin: { bind: "127.0.0.1:9" }
                """),
        .conflict, "listeners.admin.bind", line: 15),
    .behind("nobody serves it", "listeners: { admin: {} }", .conflict, zulip, line: 10),
    .behind(
        "two bouncers on one door", "  second: { protocol: zulip, apps: [acme], keys: b }", .conflict,
        "listeners.public.serves", line: nil)
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

    @Test("An indentation of no-break spaces is named, and they are taken where they hurt nobody")
    func noBreakSpaces() throws {
        for text in ["log:\n  level: info\n\u{A0} format: json", "log:\n  level: info\n \u{A0}format: json"] {
            let found = faults(text)
            #expect(found.map(\.code) == [.notYAML])
            #expect(found.first?.source == .file(line: 3))
            #expect(found.first?.sentence.contains("U+00A0") == true)
        }
        _ = try load(minimal(appending: "# here\u{A0}is one"))
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
