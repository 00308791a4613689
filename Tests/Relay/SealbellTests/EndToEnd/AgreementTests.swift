import AtRest
import Crypto
import Foundation
import Secp256k1Keys
import Primitives
import PushModel
import PushTesting
import Simulators
import Testing
import ZulipPush

@testable import RelayProgram

/// What `config check` calls a fault, `serve` refuses, and the other way round.
@Suite("config check and serve", .timeLimit(.minutes(30)), .serialized)
struct AgreementTests {
    /// One configuration, and what both must say of it.
    private struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let ending: Ending
        let change: @Sendable (Draft) throws -> Void

        init(_ name: String, _ ending: Ending, _ change: @escaping @Sendable (Draft) throws -> Void) {
            testDescription = name
            self.ending = ending
            self.change = change
        }
    }

    /// A folder with a sound configuration, to be spoilt.
    private final class Draft {
        let folder: TemporaryFolder
        var text = """
            listeners:
              public: { bind: "127.0.0.1:0", serves: [zulip-main] }
              admin: { bind: "127.0.0.1:0" }
            store: { url: "sqlite:relay.sqlite", keys: storage.keys }
            apps:
              acme:
                apns: { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.acme.chat] }
            instances:
              zulip-main: { protocol: zulip, apps: [acme], keys: bouncer.keys }

            """

        init() throws {
            folder = try TemporaryFolder()
            try put("apns.p8", P256.Signing.PrivateKey().pemRepresentation + "\n")
            try put(
                "bouncer.keys",
                BouncerKeysFile.text([.generate(.live)]).reveal { String(decoding: $0, as: UTF8.self) })
        }

        func put(_ name: String, _ content: String, mode: mode_t = 0o600) throws {
            try writeFile("\(folder.path)/\(name)", Array(content.utf8), replacing: true)
            chmod("\(folder.path)/\(name)", mode)
        }

        func replace(_ old: String, with new: String) {
            precondition(text.contains(old))
            text = text.replacing(old, with: new)
        }

        /// A certificate of so many days from now on, or before.
        func certify(days: Int64) throws {
            var world = World.live
            // Simulated authorities issue for ten years.
            let now = World.live.now().seconds
            world.now = { UnixTime(seconds: now + (days - 3650) * 86_400) }
            let issued = try CertificateAuthority(world: world).issue()
            try put("a.pem", issued.certificatePEM)
            try put("a.key", issued.privateKeyPEM)
            replace(
                "serves: [zulip-main] }", with: "serves: [zulip-main], tls: { cert: a.pem, key: a.key } }")
        }
    }

    private static let cases = [
        Case("sound", .done) { _ in },
        Case("a short admin token", .configuration) { draft in
            try draft.put("token", "short\n")
            draft.replace(
                "admin: { bind: \"127.0.0.1:0\" }",
                with: "admin: { bind: \"127.0.0.1:0\", token_file: token }")
        },
        Case("a short webhook secret", .configuration) { draft in
            try draft.put("secret", "x\n")
            draft.text += "alerts: { webhook: { url: \"https://ops.example/\", secret_file: secret } }\n"
        },
        Case("a key that others may open", .configuration) { draft in
            chmod(draft.folder.path + "/apns.p8", 0o644)
        },
        Case("a key that the group may open", .done) { draft in chmod(draft.folder.path + "/apns.p8", 0o640)
        },
        Case("two instances on the same paths", .configuration) { draft in
            draft.replace("serves: [zulip-main]", with: "serves: [zulip-main, zulip-two]")
            draft.text += "  zulip-two: { protocol: zulip, apps: [acme], keys: bouncer.keys }\n"
        },
        Case("one Nostr key twice", .configuration) { draft in
            let key = NostrKeyFile.text(.generate(.live)).reveal { String(decoding: $0, as: UTF8.self) }
            try draft.put("one", key)
            try draft.put("two", key)
            draft.text +=
                "  marmot-main: { protocol: marmot, apps: [acme], key_file: one, old_key_files: [two], "
                + "relays: [\"ws://127.0.0.1:9\"] }\n"
        },
        Case("storage keys that are none", .configuration) { draft in try draft.put("storage.keys", "{}") },
        Case("storage keys that others may open", .configuration) { draft in
            _ = try KeyFile.create(draft.folder.path + "/storage.keys", .live)
            chmod(draft.folder.path + "/storage.keys", 0o644)
        },
        Case("a certificate with another's key", .configuration) { draft in
            try draft.certify(days: 90)
            try draft.put("a.key", try CertificateAuthority().issue().privateKeyPEM)
        },
        Case("a certificate that has ended", .failed) { draft in try draft.certify(days: -1) },
        Case("an authority that is none", .configuration) { draft in
            try draft.put("ca.pem", "none\n")
            draft.replace("key_file: apns.p8,", with: "key_file: apns.p8, ca: ca.pem,")
        }
    ]

    @Test("Both say the same of each configuration", arguments: cases)
    private func agree(_ one: Case) async throws {
        let draft = try Draft()
        try one.change(draft)
        let path = draft.folder.path
        try writeFile(path + "/sealbell.yaml", Array(draft.text.utf8), replacing: true)
        let checked = await CommandRun.of(["config", "check", "--state", "state"], in: path, home: path)
        #expect(checked.status == one.ending, "\(checked.lines)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).contains("state") == false)
        let program = try Program(["serve", "--config", "sealbell.yaml", "--state", "state"], in: path)
        if one.ending == .configuration {
            #expect(await program.status() == 78)
            // `configuration fault`, or `not started` where the wiring found it.
            #expect(await program.says("\"level\":\"error\""))
        } else if await program.says("\"event\":\"started\"") {
            await program.stop()
        } else {
            Issue.record("serve does not start: \(program.text)")
        }
    }

    @Test("So they do in the sandbox, which makes what a configuration names and is not there")
    func sandbox() async throws {
        let draft = try Draft()
        for name in ["apns.p8", "bouncer.keys"] { unlink(draft.folder.path + "/" + name) }
        let path = draft.folder.path
        try writeFile(path + "/sealbell.yaml", Array(draft.text.utf8), replacing: true)
        let checked = await CommandRun.of(["config", "check", "--sandbox"], in: path, home: path)
        #expect(checked.status == .done, "\(checked.lines)")
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: path)
        #expect(await program.says("\"event\":\"started\""))
        // A reload asks the same.
        chmod(path + "/bouncer.keys", 0o644)
        program.signal(SIGHUP)
        #expect(await program.says("reload refused"))
        chmod(path + "/bouncer.keys", 0o600)
        program.signal(SIGHUP)
        #expect(await program.says("configuration reloaded"))
        await program.stop()
    }
}
