import NextcloudPush
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

/// The smallest configuration with a Nextcloud instance, and more of its keys.
private func nextcloud(_ keys: String = "", appending more: String = "") -> String {
    let lines = keys.split(separator: "\n").map { "    \($0)\n" }.joined()
    return minimal(
        appending: more,
        instances: "instances:\n  cloud:\n    protocol: nextcloud\n    apps: [acme]\n\(lines)")
}

private let path = "instances.cloud"

@Suite("A Nextcloud instance in the configuration")
struct NextcloudConfigurationTests {
    @Test("Nothing needs to be said, and the defaults trust nobody")
    func defaults() throws {
        let configuration = try load(nextcloud())
        let found = try #require(configuration.instances.first?.nextcloud)
        #expect(found.clients.isEmpty && !found.hasBarePath && found.subscriptionKeysFile == nil)
        #expect(found.missingDevice == .forbidden && found.newKey == .byProof && found.proof.isEmpty)
        #expect(found.privateHosts.isEmpty && found.caFile == nil && found.peers.isEmpty)
        #expect(found.paths(of: configured("cloud")) == ["/cloud/"])
        #expect(configuration.listeners.flatMap(\.serves).map(\.text) == ["cloud"])
        #expect(configuration.warnings.isEmpty)
    }

    @Test("All that can be said is read")
    func everything() throws {
        let configuration = try load(
            nextcloud(
                """
                clients: { nextcloud-talk: acme }
                bare_path: true
                subscription_keys: subscriptions
                missing_device: accept
                proof: [cloud.example.org, "Files.example.org:8443/nextcloud"]
                private_hosts: [cloud.internal, "10.0.0.7:8443", "[fd00::7]"]
                ca: ca.pem
                """))
        let found = try #require(configuration.instances.first?.nextcloud)
        #expect(found.clients == ["nextcloud-talk": configured("acme")] && found.hasBarePath)
        #expect(found.subscriptionKeysFile == "/etc/sealbell/subscriptions")
        #expect(found.missingDevice == .success)
        #expect(found.proof == ["cloud.example.org", "files.example.org:8443/nextcloud"])
        #expect(
            found.peers.map(\.host) == ["10.0.0.7", "cloud.internal", "fd00::7"]
                && found.peers.map(\.port) == [8443, 443, 443])
        #expect(found.peers.allSatisfy { $0.caFile == "/etc/sealbell/ca.pem" && !$0.isPlain })
        #expect(found.paths(of: configured("cloud")) == ["/cloud/", "/devices", "/notifications"])
        let file = configuration.files.first { $0.path == "\(path).subscription_keys" }
        #expect(file?.content == .subscriptionKeys)
    }

    private static let bad: [BadText] = [
        BadText("unknown key", nextcloud("bare_paht: true"), .unknownKey, "\(path).bare_paht", line: 12),
        BadText(
            "client of nobody", nextcloud("clients: { nextcloud-talk: other }"), .unknownReference,
            "\(path).clients.nextcloud-talk", line: 12),
        BadText(
            "clients as a list", nextcloud("clients: [nextcloud-talk]"), .wrongShape, "\(path).clients",
            line: 12),
        BadText(
            "a URL for a host", nextcloud("private_hosts: [\"https://cloud.internal\"]"), .badValue,
            "\(path).private_hosts", line: 12),
        BadText(
            "a URL to prove", nextcloud("proof: [\"https://cloud.example.org\"]"), .badValue, "\(path).proof",
            line: 12),
        BadText(
            "a path behind a host", nextcloud("private_hosts: [cloud.internal/nextcloud]"), .badValue,
            "\(path).private_hosts", line: 12),
        BadText("an authority for nobody", nextcloud("ca: ca.pem"), .conflict, "\(path).ca", line: 12),
        BadText(
            "a third answer", nextcloud("missing_device: 404"), .badValue, "\(path).missing_device", line: 12),
        BadText(
            "a third way to a new key", nextcloud("new_key: trust"), .badValue, "\(path).new_key", line: 12),
        BadText(
            "a new key by token where the first needs proof",
            nextcloud("new_key: token\nproof: [cloud.example.org]"), .conflict, "\(path).new_key", line: 12)
    ]

    @Test("A device may take another key by its token where that is said")
    func newKey() throws {
        let configuration = try load(nextcloud("new_key: token"))
        #expect(configuration.instances.first?.nextcloud?.newKey == .byToken)
    }

    @Test("What is wrong is said by path and line", arguments: bad)
    func wrong(_ bad: BadText) throws { try bad.expectAlone() }

    @Test("An app with several bundle ids is one too many, because a registration names none")
    func bundles() {
        let two = nextcloud().replacing("[org.acme.chat]", with: "[org.acme.chat, org.acme.talk]")
        #expect(faults(two).map(\.path) == ["\(path).apps"])
    }

    @Test("A client's app must be among the instance's")
    func foreignClient() {
        let text = nextcloud("clients: { nextcloud-talk: other }").replacing(
            "instances:\n", with: "  other:\n    fcm: { service_account: a.json }\ninstances:\n")
        #expect(faults(text).map(\.code) == [.conflict])
    }

    @Test("Two instances stand behind one listener by their names, and only one of them without a prefix")
    func clash() throws {
        func text(_ first: String, _ second: String) -> String {
            nextcloud("bare_path: \(first)")
                + "  devices: { protocol: nextcloud, apps: [acme], bare_path: \(second) }\n"
        }
        #expect(try load(text("true", "false")).instances.count == 2)
        #expect(try load(text("false", "false")).instances.count == 2)
        let clash = faults(text("true", "true"))
        #expect(clash.map(\.code) == [.conflict] && clash.map(\.path) == ["listeners.public.serves"])
    }

    @Test("A name that is the beginning of another protocol's paths clashes with it")
    func foreignPath() {
        let text =
            nextcloud().replacing("  cloud:", with: "  api:")
            + "  zulip-main: { protocol: zulip, apps: [acme], keys: bouncer.keys }\n"
        #expect(faults(text).map(\.path) == ["listeners.public.serves"])
    }
}

@Suite("The file of subscription keys")
struct SubscriptionKeysTests {
    private func parse(_ text: String) throws(SubscriptionKeysFile.Fault) -> [String] {
        try SubscriptionKeysFile.parse(Secret(text.utf8)).map { key in
            key.reveal { String(decoding: $0, as: UTF8.self) }
        }
    }

    @Test("A line is a key; blanks around it, empty lines and comments are none")
    func lines() throws {
        let text = "# ours\n\nABCDE-FGHIJ-KLMNO-PQRST-12345\r\n  abcdefghijklmnop\t\n"
        #expect(try parse(text) == ["ABCDE-FGHIJ-KLMNO-PQRST-12345", "abcdefghijklmnop"])
    }

    @Test(
        "What is no key is refused without its bytes",
        arguments: [
            ("", SubscriptionKeysFile.Fault.empty), ("# nothing\n", .empty), ("short", .malformed),
            ("two words of a key here", .malformed), (String(repeating: "k", count: 257), .malformed),
            ("schlüssel-schlüssel", .malformed),
            (String(repeating: "abcdefghijklmnop\n", count: 1_001), .tooMany)
        ])
    func faults(_ text: String, _ fault: SubscriptionKeysFile.Fault) {
        #expect(throws: fault) { try parse(text) }
        #expect(fault.sentence.hasSuffix("."))
        if text.count > 20 { #expect(!fault.sentence.contains(text.prefix(16))) }
    }
}
