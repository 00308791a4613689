import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@testable import RelayProgram

private let path = "instances.main"
private let key = "key_file: status.key"
private let waku = "waku: { url: \"http://127.0.0.1:8645\" }"

/// The smallest configuration with a Status instance, with these keys.
private func status(_ keys: String..., appending more: String = "") -> String {
    let lines = keys.map { "    \($0)\n" }.joined()
    return minimal(
        appending: more,
        instances: "instances:\n  main:\n    protocol: status\n    apps: [acme]\n\(lines)")
}

/// A configuration of that instance and no app.
private func appless(_ keys: String..., appending more: String = "") -> String {
    "instances:\n  main:\n    protocol: status\n" + keys.map { "    \($0)\n" }.joined() + more
}

private let gorush = "gorush: { url: \"http://127.0.0.1:8088\" }"

@Suite("A Status instance in the configuration")
struct StatusConfigurationTests {
    @Test("Key and node are enough, and no listener serves it")
    func defaults() throws {
        let configuration = try load(status(key, waku))
        let found = try #require(configuration.instances.first?.status)
        #expect(found.keyFile == "/etc/sealbell/status.key" && found.policy.compatibility == .standard)
        #expect(found.waku?.url.text == "http://127.0.0.1:8645" && found.gorush == nil)
        #expect(found.allowances == .init() && found.allowances.registrations.perMinute == 1_200)
        #expect(found.policy == StatusPolicy())
        #expect(found.peers == [PeerAddress(host: "127.0.0.1", port: 8_645, isPlain: true)])
        #expect(configuration.listeners.map(\.name.text) == ["admin"])
        #expect(configuration.files.contains { $0.content == .statusKey && $0.path == "\(path).key_file" })
        #expect(configuration.warnings.isEmpty)
    }

    @Test("All that can be said is read")
    func everything() throws {
        let text = status(
            key, "waku: { url: \"https://node.acme.example:8646/\", ca: node.pem }",
            "gorush: { url: \"http://localhost:8088/push/\" }", "bundle: org.acme.chat",
            "compatibility: status-go", "registrations_per_minute: 60", "queries_per_minute: 600",
            "requests_per_minute: 6000")
        let found = try #require(try load(text).instances.first?.status)
        #expect(found.waku?.url.text == "https://node.acme.example:8646" && found.waku?.url.port == 8_646)
        #expect(found.waku?.caFile == "/etc/sealbell/node.pem")
        #expect(found.gorush?.url.text == "http://localhost:8088/push" && found.gorush?.caFile == nil)
        #expect(found.policy.defaultBundle == "org.acme.chat" && found.policy.compatibility == .statusGo)
        #expect(found.allowances == .init(registrations: 60, queries: 600, requests: 6_000))
        #expect(
            found.peers == [
                PeerAddress(host: "node.acme.example", port: 8_646, caFile: "/etc/sealbell/node.pem"),
                PeerAddress(host: "localhost", port: 8_088, isPlain: true)
            ])
    }

    @Test("Where a gorush has the credentials, neither instance nor file names an app")
    func withoutApps() throws {
        let configuration = try load(appless(key, waku, gorush, "bundle: org.anything"))
        let instance = try #require(configuration.instances.first)
        #expect(instance.apps == [] && configuration.apps == [] && configuration.warnings.isEmpty)
        let policy = StatusPolicy(delivery: .gateway, defaultBundle: "org.anything")
        #expect(instance.status?.policy == policy)
        // Apps that another instance has are none of its own.
        let both = try load(
            minimal(appending: "  main: { protocol: status, \(key), \(waku), \(gorush) }\n"))
        #expect(both.instances.map(\.apps.count) == [0, 1])
    }

    @Test("Without a gorush an app is missed, in the instance and in the file")
    func missingApps() throws {
        #expect(faults(appless(key, waku)).map(\.path).sorted() == ["apps", "\(path).apps"])
        let other = appless(
            key, waku, gorush, appending: "  other: { protocol: zulip, keys: bouncer.keys }\n")
        #expect(Set(faults(other).map(\.path)) == ["apps", "instances.other.apps"])
    }

    @Test("A sandbox needs no node of its own")
    func sandbox() throws {
        let found = try #require(try load(status(key), sandbox: true).instances.first?.status)
        #expect(found.waku == nil)
    }

    private static let bad: [BadText] = [
        BadText("no key", status(waku), .missingKey, "\(path).key_file", line: 10),
        BadText("no node", status(key), .missingKey, "\(path).waku", line: 10),
        BadText(
            "a node without an address", status(key, "waku: {}"), .missingKey, "\(path).waku.url", line: 13),
        BadText(
            "plain http to elsewhere", status(key, "waku: { url: \"http://192.0.2.1:8645\" }"), .badValue,
            "\(path).waku.url", line: 13, says: "https://"),
        BadText(
            "another scheme", status(key, "waku: { url: \"ws://127.0.0.1:8645\" }"), .badValue,
            "\(path).waku.url", line: 13),
        BadText(
            "credentials", status(key, "waku: { url: \"http://a:b@127.0.0.1:8645\" }"), .badValue,
            "\(path).waku.url", line: 13),
        BadText(
            "a path to the node", status(key, "waku: { url: \"http://127.0.0.1:8645/relay\" }"), .badValue,
            "\(path).waku.url", line: 13, says: "path"),
        BadText(
            "an authority for plain http",
            status(key, "waku: { url: \"http://127.0.0.1:8645\", ca: ca.pem }"), .conflict, "\(path).waku.ca",
            line: 13),
        BadText(
            "an unknown key of the node", status(key, "waku: { url: \"http://127.0.0.1:1\", urls: a }"),
            .unknownKey, "\(path).waku.urls", line: 13),
        BadText(
            "gorush elsewhere in the clear", status(key, waku, "gorush: { url: \"http://gorush:8088\" }"),
            .badValue, "\(path).gorush.url", line: 14),
        BadText(
            "a query", status(key, waku, "gorush: { url: \"https://gorush.example/?a=b\" }"), .badValue,
            "\(path).gorush.url", line: 14),
        BadText(
            "no way of its own", status(key, waku, "compatibility: statusgo"), .badValue,
            "\(path).compatibility", line: 14, says: "status-go"),
        BadText(
            "nothing a minute", status(key, waku, "queries_per_minute: 0"), .outOfBounds,
            "\(path).queries_per_minute", line: 14),
        BadText(
            "an unknown bundle", status(key, waku, "bundle: org.other"), .conflict, "\(path).bundle", line: 14
        ),
        BadText(
            "no form of a bundle", appless(key, waku, gorush, "bundle: org.acme.voip"), .badValue,
            "\(path).bundle", line: 7),
        BadText(
            "an app of Google's alone", appless(key, waku, gorush, "fcm_app: acme"), .unknownReference,
            "\(path).fcm_app", line: 7),
        BadText(
            "another protocol's key", status(key, waku, "sign_up: open"), .unknownKey, "\(path).sign_up",
            line: 14),
        BadText(
            "served by a listener",
            status(key, waku, appending: "listeners:\n  public: { serves: [main] }\n  admin: {}"), .conflict,
            "listeners.public.serves", line: nil, says: "Waku node")
    ]

    @Test("What is wrong is said by path and line", arguments: bad)
    func faulty(_ bad: BadText) throws {
        let sentence = try bad.expectAlone()
        #expect(!sentence.contains("192.0.2.1") && !sentence.contains("a:b"))
    }
}

@Suite("The key file of a push notification server")
struct StatusKeyFileTests {
    @Test("What was written is read again, with or without a line break, in either case")
    func roundTrip() throws { try StatusKeyFile.expectRoundTrip() }

    @Test("What is no key is refused", arguments: StatusKeyFile.bad)
    func bad(_ text: String, _ expected: StatusKeyFile.Fault) {
        #expect(throws: expected) { try StatusKeyFile.parse(Secret(text.utf8)) }
    }

    @Test("A public key is read in each form that people have it in, and nothing else is")
    func points() throws {
        let point = Secp256k1KeyPair.generate(.live).point
        let text = StatusKeyFile.publicText(point)
        #expect(text.hasPrefix("0x04") && text.utf8.count == 132)
        for form in [text, String(text.dropFirst(2)), String(text.dropFirst(4)), text.uppercased()] {
            #expect(StatusKeyFile.point(form) == point, "\(form)")
        }
        for form in ["", "0x", "04", String(text.dropLast()), text + "0", "0x05" + text.dropFirst(4)] {
            #expect(StatusKeyFile.point(form) == nil, "\(form)")
        }
    }
}
