import Foundation
import Primitives
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

@testable import RelayProgram

/// `sealbell keys list` of every protocol's keys, without a relay; beside one, see `KeyringTests`.
@Suite("The list of keys", .timeLimit(.minutes(30)))
struct KeysListTests {
    private static let text =
        sampleApp + """
            store: { keys: storage.keys }
            state: state
            instances:
              chat: { protocol: zulip, apps: [acme], keys: bouncer.keys, sign_up: invite }
              marmot:
                { protocol: marmot, apps: [acme], key_file: nostr.key, old_key_files: [nostr-old.key],
                  relays: ["wss://relay.example.org"] }
              session: { protocol: session, apps: [acme], onion_key: onion.key, oxend: "ipc:///oxend.sock" }
              status: { protocol: status, apps: [acme], key_file: status.key, waku: { url: "http://127.0.0.1:1" } }
              cloud: { protocol: nextcloud, apps: [acme], subscription_keys: subscription.keys }

            """

    /// What makes each key file, and where the configuration names it.
    private static let made: [(words: [String], file: String, place: String)] = [
        (["zulip"], "bouncer.keys", "instances.chat.keys"),
        (["nostr"], "nostr.key", "instances.marmot.key_file"),
        (["nostr"], "nostr-old.key", "instances.marmot.old_key_files"),
        (["session"], "onion.key", "instances.session.onion_key"),
        (["status"], "status.key", "instances.status.key_file"), (["storage"], "storage.keys", "store.keys")
    ]

    private static let subscription = "a-subscription-key-of-a-server"

    private func run(_ words: [String], _ folder: TemporaryFolder) async -> CommandRun {
        await .of(words, in: folder.path, home: folder.path)
    }

    /// A folder with a configuration and its keys.
    ///
    /// - Returns: what each command that made a key said of it, by the key's file.
    private func prepared() async throws -> (folder: TemporaryFolder, said: [String: String]) {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/sealbell.yaml", Array(Self.text.utf8), replacing: true)
        try writeFile(
            folder.path + "/subscription.keys", Array("\(Self.subscription)\n".utf8), replacing: true)
        var said: [String: String] = [:]
        for (words, file, _) in Self.made {
            let ran = await run(["keys", "new"] + words + ["--file", file], folder)
            try #require(ran.status == .done, "\(ran.all)")
            said[file] = ran.out.first
        }
        return (folder, said)
    }

    private func rows(_ run: CommandRun) throws -> [JSONValue] {
        try #require(try JSONValue.parse(Array(run.out.joined().utf8))["keys"]?.array)
    }

    @Test("Every key that the configuration names is listed, as the command that made it said it")
    func all() async throws {
        let (folder, said) = try await prepared()
        let ran = await run(["keys", "list", "--json"], folder)
        #expect(ran.status == .done, "\(ran.all)")
        #expect(ran.err.count == 1 && ran.err[0].hasPrefix("Which keys are in force is not known: "))
        let rows = try rows(ran)
        for (words, file, place) in Self.made {
            let row = try #require(rows.first { $0["file"]?.string == "\(folder.path)/\(file)" }, "\(file)")
            #expect(row["place"]?.string?.hasPrefix(place) == true, "\(file)")
            #expect(row["from"]?.string?.hasPrefix("\(folder.path)/sealbell.yaml:") == true, "\(file)")
            if words == ["storage"] {
                #expect(row["number"]?.int64 == 1 && row["instance"] == nil)
            } else {
                #expect(row["public_key"]?.string == said[file], "\(file)")
                #expect(row["instance"]?.string.map { place.contains(".\($0).") } == true, "\(file)")
            }
            #expect(row["in_force"] == nil && row["uses"] == nil, "nobody has said so")
        }
        let core = try #require(rows.first { $0["content"]?.string == "a core key" })
        #expect(core["file"]?.string == folder.path + "/state/session.core.key" && core["public_key"] == nil)
        let servers = try #require(rows.first { $0["place"]?.string == "instances.cloud.subscription_keys" })
        #expect(servers["count"]?.int64 == 1)
        #expect(rows.count == Self.made.count + 2)
    }

    @Test("A key that the relay has made is listed once it is there")
    func core() async throws {
        let (folder, _) = try await prepared()
        let before = await run(["keys", "list", "--instance", "session"], folder)
        #expect(before.status == .done && before.all.contains("not made yet"), "\(before.all)")
        try FileManager.default.createDirectory(
            atPath: folder.path + "/state", withIntermediateDirectories: false)
        let made = await run(
            ["keys", "new", "session", "--file", "other.key", "--core", "state/session.core.key"], folder)
        let after = await run(["keys", "list", "--instance", "session"], folder)
        #expect(made.out.count == 2 && after.out.contains("  " + made.out[1]), "\(after.all)")
        #expect(after.out.count == 4 && !after.all.contains("not made yet"), "the onion key and this one")
    }

    @Test("Before the first start the store's keys are to come; beside a store they are missing")
    func storageKeys() async throws {
        let (folder, _) = try await prepared()
        try FileManager.default.removeItem(atPath: folder.path + "/storage.keys")
        let before = await run(["keys", "list"], folder)
        #expect(before.status == .done && before.all.contains("not made yet"), "\(before.all)")
        try FileManager.default.createDirectory(
            atPath: folder.path + "/state", withIntermediateDirectories: true)
        try writeFile(folder.path + "/state/relay.sqlite", Array("a store".utf8), replacing: false)
        let after = await run(["keys", "list"], folder)
        #expect(after.status == .failed && after.out.contains("  \(FileFault.missing.sentence)"))
    }

    @Test("No private byte is shown, in whatever spelling")
    func secrets() async throws {
        let (folder, _) = try await prepared()
        let shown = await run(["keys", "list"], folder).all + run(["keys", "list", "--json"], folder).all
        var secrets: [[UInt8]] = [Array(Self.subscription.utf8)]
        func read(_ file: String) throws -> Secret {
            try readSecret("\(folder.path)/\(file)", limitBytes: credentialLimitBytes)
        }
        secrets += try BouncerKeysFile.parse(try read("bouncer.keys")).map {
            $0.privateKey.reveal(Array.init)
        }
        secrets.append(try NostrKeyFile.parse(try read("nostr.key")).secret.reveal { Array($0) })
        secrets.append(try SessionKeyFile.parse(try read("onion.key")).privateKey.reveal { Array($0) })
        secrets.append(try StatusKeyFile.parse(try read("status.key")).secret.reveal { Array($0) })
        let storage = try String(contentsOfFile: folder.path + "/storage.keys", encoding: .utf8)
        let digits = storage.matches(of: #/[0-9a-f]{64}/#).map { String($0.0) }
        #expect(digits.count == 2, "a lookup key and a seal key")
        secrets += try digits.map { try Hex.decode(Array($0.utf8)) }
        for secret in secrets {
            for part in [secret.prefix(8), secret.suffix(8)] {
                #expect(!shown.contains(Hex.encode(Array(part))))
                // Of six bytes at the beginning, so that the spelling does not depend on what follows.
                #expect(!shown.contains(Base64.text(Array(part.prefix(6)))))
                #expect(!shown.contains(String(decoding: part, as: UTF8.self)))
            }
        }
    }

    @Test("A file that is missing or broken is told beside the others, and the command fails")
    func faults() async throws {
        let (folder, said) = try await prepared()
        try FileManager.default.removeItem(atPath: folder.path + "/nostr.key")
        try writeFile(folder.path + "/onion.key", Array("nonsense\n".utf8), replacing: true)
        try writeFile(folder.path + "/storage.keys", Array("nonsense\n".utf8), replacing: true)
        let ran = await run(["keys", "list", "--json"], folder)
        #expect(ran.status == .failed)
        let rows = try rows(ran)
        func row(_ place: String) -> JSONValue? { rows.first { $0["place"]?.string == place } }
        for place in ["instances.marmot.key_file", "instances.session.onion_key", "store.keys"] {
            let row = try #require(row(place))
            #expect(row["fault"]?.string?.isEmpty == false && row["public_key"] == nil, "\(place)")
        }
        #expect(row("instances.status.key_file")?["public_key"]?.string == said["status.key"])
        #expect(await run(["keys", "list", "--instance", "nobody"], folder).status == .failed)
    }
}
