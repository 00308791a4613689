import Foundation
import NIOCore
import NIOPosix
import Primitives
import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@testable import RelayProgram

private let keys = "onion_key: onion.key\noxend: \"ipc:///run/oxend.sock\""

/// The smallest configuration with a Session instance, and more of its keys.
private func session(_ keys: String = keys, apps: String = "acme", appending more: String = "") -> String {
    let lines = keys.split(separator: "\n").map { "    \($0)\n" }.joined()
    return minimal(
        appending: more,
        instances: "instances:\n  main:\n    protocol: session\n    apps: [\(apps)]\n\(lines)")
}

private let path = "instances.main"

/// A second app, with both services.
private func two(_ services: String = "") -> String {
    let other =
        "  other:\n    apns: { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, "
        + "bundles: [org.other], environment: learn }\n    fcm: { service_account: other.json }\ninstances:\n"
    return session("\(keys)\n\(services)", apps: "acme, other").replacing("instances:\n", with: other)
}

@Suite("A Session instance in the configuration", .timeLimit(.minutes(30)))
struct SessionConfigurationTests {
    @Test("Two keys are enough; the rest is as the current protocol has it")
    func defaults() throws {
        let configuration = try load(session())
        let found = try #require(configuration.instances.first?.session)
        #expect(found.oxend == .local(path: "/run/oxend.sock") && found.oxendKey == nil)
        #expect(found.onionKeyFile == "/etc/sealbell/onion.key")
        #expect(found.hasPlainHTTP && found.policy == SessionPolicy())
        #expect(found.policy.metadata == .json && found.policy.fcmHigh == .messages)
        #expect(found.paths(of: configured("main")) == ["/subscribe", "/unsubscribe", "/oxen/v4/lsrpc"])
        #expect(found.peers == [PeerAddress(socket: "/run/oxend.sock")])
        #expect(configuration.files.contains { $0.content == .onionKey })
        #expect(configuration.warnings.isEmpty)
    }

    @Test("Descriptors for two thousand storage nodes are kept, and those that are missing are said")
    func descriptors() throws {
        let with = DescriptorBudget(try load(session()), limit: 20_000)
        let without = DescriptorBudget(try load(minimal()), limit: 20_000)
        #expect(with.shortage?.contains("LimitNOFILE") == true && without.shortage == nil)
        #expect(DescriptorBudget(try load(session()), limit: 32_768).shortage == nil)
        let sandbox = try #require(try load(session()).instances.first?.session)
        #expect(sandbox.descriptors == 4 * 2_001)
    }

    @Test("The doctor knocks at a socket: absent, a file, without a listener, and with one")
    func knock() async throws {
        let folder = try TemporaryFolder()
        let checks = ReachChecks(try load(session()))
        func severity(_ name: String) async -> Finding.Severity {
            await checks.knock(PeerAddress(socket: "\(folder.path)/\(name)")).severity
        }
        #expect(await severity("absent") == .fault)
        try writeFile(folder.path + "/file", [], replacing: true)
        #expect(await severity("file") == .fault)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(unixDomainSocketPath: folder.path + "/oxend").get()
        #expect(await severity("oxend") == .good)
        try await channel.close().get()
        #expect(await severity("oxend") == .fault, "the file stays, and nobody listens")
    }

    @Test("All that can be said is read")
    func everything() throws {
        let key = String(repeating: "aB", count: 32)
        let configuration = try load(
            two(
                """
                oxend_key: \(key)
                services: { apns: acme, apns-sandbox: other, firebase: other }
                subkeys: true
                plain_http: false
                metadata: deployed
                fcm_high: all
                """
            ).replacing("ipc:///run/oxend.sock", with: "tcp://oxend.example.org:22029"))
        let found = try #require(configuration.instances.first?.session)
        #expect(found.oxend?.text == "tcp://oxend.example.org:22029" && found.oxendKey == key)
        #expect(
            found.services == [
                .apns: configured("acme"), .apnsSandbox: configured("other"), .firebase: configured("other")
            ])
        #expect(found.policy.takesSubkeys && !found.hasPlainHTTP)
        #expect(found.policy.metadata == .deployed && found.policy.fcmHigh == .always)
        #expect(found.paths(of: configured("main")) == ["/oxen/v4/lsrpc"])
        #expect(
            found.peers == [PeerAddress(host: "oxend.example.org", port: 22_029, isPlain: true)])
    }

    @Test("An app's services follow from what it has, the environment too")
    func ownServices() throws {
        func services(_ environment: String) throws -> [SessionService]? {
            let bundles = "[org.acme.chat]"
            let text = session().replacing(bundles, with: "\(bundles)\n      environment: \(environment)")
            return try load(text).instances.first?.session.map {
                $0.services.keys.sorted { $0.rawValue < $1.rawValue }
            }
        }
        #expect(try services("production") == [.apns])
        #expect(try services("sandbox") == [.apnsSandbox])
        #expect(try services("learn") == [.apns, .apnsSandbox])
    }

    @Test(
        "oxend is an address of a socket or of a host with its port",
        arguments: [
            ("ipc:///run/oxend.sock", "ipc:///run/oxend.sock"), ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"),
            ("tcp://[::1]:22029", "tcp://[::1]:22029"), ("ipc://oxend.sock", nil), ("ipc:///", nil),
            ("tcp://127.0.0.1", nil), ("tcp://127.0.0.1:0", nil), ("tcp://127.0.0.1:22029/", nil),
            ("http://127.0.0.1:22029", nil), ("tcp://[::1]", nil),
            ("ipc:///" + String(repeating: "s", count: 120), nil)
        ] as [(String, String?)])
    func addresses(_ text: String, _ read: String?) {
        #expect(OxendAddress(text)?.text == read)
    }

    private static let bad: [BadText] = [
        BadText("unknown key", session(keys + "\noxend_kye: a"), .unknownKey, "\(path).oxend_kye", line: 14),
        BadText("no key", session("oxend: \"ipc:///o\""), .missingKey, "\(path).onion_key", line: 10),
        BadText("no oxend", session("onion_key: onion.key"), .missingKey, "\(path).oxend", line: 10),
        BadText(
            "oxend without a port", session("onion_key: a\noxend: \"tcp://127.0.0.1\""), .badValue,
            "\(path).oxend", line: 13),
        BadText(
            "oxend far away in the clear", session("onion_key: a\noxend: \"tcp://oxend.example.org:22029\""),
            .conflict, "\(path).oxend", line: 13),
        BadText(
            "a key that is none", session(keys + "\noxend_key: abcd"), .badValue, "\(path).oxend_key",
            line: 14),
        BadText(
            "Huawei", session(keys + "\nservices: { huawei: acme }"), .badValue, "\(path).services.huawei",
            line: 14),
        BadText(
            "a service of nobody", session(keys + "\nservices: { apns: other }"), .unknownReference,
            "\(path).services.apns", line: 14),
        BadText(
            "a service that the app has not", session(keys + "\nservices: { firebase: acme }"), .conflict,
            "\(path).services.firebase", line: 14),
        BadText(
            "another environment", session(keys + "\nservices: { apns-sandbox: acme }"), .conflict,
            "\(path).services.apns-sandbox", line: 14),
        BadText(
            "services as a list", session(keys + "\nservices: [apns]"), .wrongShape, "\(path).services",
            line: 14),
        BadText("a third form", session(keys + "\nmetadata: xml"), .badValue, "\(path).metadata", line: 14),
        BadText("a third way", session(keys + "\nfcm_high: no"), .badValue, "\(path).fcm_high", line: 14),
        BadText("no flag", session(keys + "\nsubkeys: maybe"), .badValue, "\(path).subkeys", line: 14)
    ]

    @Test("What is wrong is said by path and line", arguments: bad)
    func wrong(_ bad: BadText) throws { try bad.expectAlone() }

    @Test("Of several apps that could serve a word, the configuration names one")
    func several() throws {
        #expect(faults(two()).map(\.path) == ["\(path).services"])
        #expect(try load(two("services: { apns: other }")).instances.count == 1)
    }

    @Test("An app with several bundle ids is one too many, because a subscription names none")
    func bundles() {
        let several = session().replacing("[org.acme.chat]", with: "[org.acme.chat, org.acme.talk]")
        #expect(faults(several).map(\.path) == ["\(path).apps"])
    }

    @Test("Two instances cannot stand behind one listener")
    func clash() {
        let text =
            session() + "  second: { protocol: session, apps: [acme], onion_key: b, oxend: \"ipc:///o\" }\n"
        #expect(faults(text).map(\.path) == ["listeners.public.serves"])
    }
}

@Suite("The key files of Session", .timeLimit(.minutes(30)))
struct SessionKeyTests {
    @Test("Digits, with a line break or without, and bare bytes are the same key")
    func forms() throws {
        let secret = "77076d0a7318a57d3c16c17251b26645df4c2f92ebc099a45bb3a3ba3a9de9b5"
        let raw = try Hex.decode(Array(secret.utf8))
        let files = [Secret(secret.utf8), Secret("\(secret.uppercased())\n".utf8), Secret(raw)]
        let keys = try files.map { try SessionKeyFile.parse($0).publicKey }
        #expect(Set(keys).count == 1)
        let text = SessionKeyFile.text(try SessionKeyFile.parse(files[2]))
        #expect(text.reveal { String(decoding: $0, as: UTF8.self) } == secret + "\n")
    }

    @Test("A key of bytes that look like white space is read whole")
    func blanks() throws {
        let raw = Secret(Array(repeating: UInt8(0x20), count: 32))
        #expect(try SessionKeyFile.parse(raw).privateKey.count == 32)
    }

    @Test(
        "What is no key is refused",
        arguments: [
            ("", SessionKeyFile.Fault.wrongSize), ("abc", .wrongSize),
            (String(repeating: "a", count: 63), .wrongSize), (String(repeating: "a", count: 66), .wrongSize),
            (String(repeating: "g", count: 64), .notHex)
        ])
    func faults(_ text: String, _ fault: SessionKeyFile.Fault) {
        #expect(throws: fault) { try SessionKeyFile.parse(Secret(text.utf8)) }
        #expect(fault.sentence.hasSuffix("."))
    }

    @Test("keys new session writes keys once, and prints what belongs into the app and what nodes see")
    func command() async throws {
        let folder = try TemporaryFolder()
        func run(_ arguments: String...) async -> (status: Ending, said: [String]) {
            let words = ["keys", "new", "session"] + arguments
            let run = await CommandRun.of(words, in: folder.path, home: folder.path)
            return (run.status, run.lines)
        }
        let made = await run("--file", "onion.key", "--core", "main.core.key")
        #expect(made.status == .done && made.said.count == 2)
        for (name, printed) in zip(["onion.key", "main.core.key"], made.said) {
            let file = Secret(try readFile("\(folder.path)/\(name)", limitBytes: 128))
            #expect(Hex.encode(try SessionKeyFile.parse(file).publicKey) == printed)
        }
        let core = try SessionKeyFile.core(configured("main"), state: folder.path, .live)
        #expect(Hex.encode(core.publicKey) == made.said[1], "the relay takes the pair that is there")
        #expect(await run("--file", "onion.key").status == .failed, "a key is never overwritten")
        #expect(await run("--file", "same.key", "--core", "./same.key").status == .usage)
        let json = await run("--file", "other.key", "--json")
        #expect(try JSONValue.parse(Array(json.said.joined().utf8))["public_key"]?.string?.count == 64)
    }

    @Test("The core pair is made once and is the same after a restart; a broken file is not overwritten")
    func core() throws {
        let folder = try TemporaryFolder()
        let name = configured("main")
        let first = try SessionKeyFile.core(name, state: folder.path, .live)
        #expect(try SessionKeyFile.core(name, state: folder.path, .live).publicKey == first.publicKey)
        let other = try SessionKeyFile.core(configured("other"), state: folder.path, .live)
        #expect(other.publicKey != first.publicKey)
        let path = SessionKeyFile.corePath(name, state: folder.path)
        try writeFile(path, Array("broken".utf8), replacing: true)
        #expect(throws: CommandFailure.self) {
            try SessionKeyFile.core(name, state: folder.path, .live)
        }
        #expect(try readFile(path, limitBytes: 64) == Array("broken".utf8))
    }
}
