import ArgumentParser
import AtRest
import Crypto
import CryptoExtras
import Foundation
import Primitives
import PushModel
import PushTesting
import Simulators
import Testing
import WireFormats

@testable import RelayProgram
@testable import sealbell_bench

/// Runs a command line in a folder, as one user and at one moment would.
private func sealbell(
    _ arguments: String..., in folder: TemporaryFolder, environment: [String: String] = [:],
    now: UnixTime = UnixTime(seconds: 1_795_257_671), root: any AsyncParsableCommand.Type = Sealbell.self
) async -> (status: Ending, out: [String], err: [String]) {
    let out = Lines()
    let err = Lines()
    var world = World.live
    world.now = { now }
    var facts = facts(environment, home: folder.path)
    facts.workingDirectory = folder.path
    let shell = Shell(facts: facts, world: world, out: { out.add($0) }, err: { err.add($0) })
    let status = await EntryPoint.run(root, arguments, shell)
    return (status, out.all, err.all)
}

/// A folder with a configuration and sound credentials.
private func sound() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    func put(_ name: String, _ text: String) throws {
        try writeFile("\(folder.path)/\(name)", Array(text.utf8), replacing: true)
    }
    try put(
        "sealbell.yaml",
        minimal(
            appending: "listeners:\n  public: { bind: \"127.0.0.1:0\", serves: [zulip-main] }\n"
                + "  admin: { bind: \"127.0.0.1:0\" }"))
    try put("apns.p8", P256.Signing.PrivateKey().pemRepresentation + "\n")
    try put(
        "bouncer.keys",
        BouncerKeysFile.text([.generate(.live)]).reveal { String(decoding: $0, as: UTF8.self) })
    return folder
}

private func object(_ text: String?) throws -> [String: Any] {
    let data = Data(try #require(text).utf8)
    return try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
}

@Suite("Commands", .timeLimit(.minutes(30)))
struct CommandTests {
    @Test("A wrong command line ends with 64, help and version with 0")
    func usage() async throws {
        let folder = try TemporaryFolder()
        #expect(await sealbell("--version", in: folder).out == [Release.version])
        let version = await sealbell("version", in: folder).out
        try #require(version.count == 3)
        #expect(version[0] == Release.version)
        #expect(version[1].firstMatch(of: #/^commit ([0-9a-f]{7,64}|unknown: .+)$/#) != nil, "\(version)")
        #expect(version[2].firstMatch(of: #/^build (debug|release), \w+$/#) != nil, "\(version)")
        #expect(await sealbell("--help", in: folder).status == .done)
        #expect(await sealbell("config", in: folder).status == .done)
        for line in [["nonsense"], ["config", "check", "--loud"], ["config", "check", "a", "--config", "b"]] {
            let ended = await Sealbell.run(
                line, Shell(facts: facts(), world: .live, out: { _ in }, err: { _ in }))
            #expect(ended == .usage, "\(line)")
        }
    }

    @Test("A mistyped command is told the one that is near, and an argument is never taken for one")
    func mistyped() async throws {
        let folder = try TemporaryFolder()
        for (words, meant) in [
            (["orgins"], "sealbell origins"), (["orgins", "list"], "sealbell origins"),
            (["origins", "lst"], "sealbell origins list"),
            (["keys", "new", "storge"], "sealbell keys new storage")
        ] {
            let run = await CommandRun.of(words, in: folder.path)
            #expect(run.status == .usage && run.err.last == "Did you mean \(meant)?", "\(run.all)")
        }
        for words in [["xylophone"], ["origins", "invite"], ["why", "relam"], ["config", "check", "--chek"]] {
            let run = await CommandRun.of(words, in: folder.path)
            #expect(run.status == .usage && !run.all.contains("Did you mean sealbell"), "\(run.all)")
        }
    }

    @Test("Options that lose pushes are refused where a push service could be reached, before any start")
    func danger() async throws {
        let folder = try sound()
        for option in ["--danger-volatile-store", "--danger-synchronous-normal"] {
            let unknown = await sealbell("serve", "--config", "sealbell.yaml", option, in: folder)
            #expect(unknown.status == .usage && unknown.err.first?.contains("Unknown option") == true)
            let refused = await sealbell(
                "serve", "--config", "sealbell.yaml", option, in: folder, root: SealbellBench.self)
            #expect(refused.status == .usage, "\(option)")
            #expect(refused.err.first?.contains("--sandbox") == true)
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/sealbell-state/run.json"))
        var configuration = try ConfigurationLoader.read(
            minimal(), file: folder.path + "/sealbell.yaml", ConfigurationRequest(state: folder.path),
            facts(home: folder.path))
        #expect(!configuration.reachesNobody)
        for (host, isHere) in [
            ("127.0.0.1", true), ("::1", true), ("localhost", true), ("127.9.9.9", true),
            ("localhost.example.org", false), ("10.0.0.1", false), ("api.push.apple.com", false)
        ] {
            configuration.apps[0].apns?.url = HTTPSBase(host: host, port: 443)
            configuration.apps[0].fcm = nil
            #expect(configuration.reachesNobody == isHere, "\(host)")
        }
        configuration.apps[0].apns?.url = HTTPSBase(host: "127.0.0.1", port: 443)
        configuration.apps[0].apns?.sandboxURL = HTTPSBase(host: "api.sandbox.push.apple.com", port: 443)
        #expect(!configuration.reachesNobody, "Apple's other world")
    }

    @Test("A sound configuration passes the check")
    func good() async throws {
        let folder = try sound()
        let text = await sealbell("config", "check", in: folder)
        #expect(text.status == .done && text.err.isEmpty)
        #expect(text.out.count == 4 && text.out.allSatisfy { $0.hasPrefix("good") })
        let json = await sealbell("config", "check", "sealbell.yaml", "--json", in: folder)
        #expect(try object(json.out.first)["ok"] as? Bool == true)
    }

    @Test("A faulty configuration ends with 78 and lines that point at the faults")
    func faulty() async throws {
        let folder = try sound()
        let path = folder.path + "/sealbell.yaml"
        try writeFile(path, Array(minimal("team:", with: "taem:").utf8), replacing: true)
        let text = await sealbell("config", "check", path, in: folder)
        #expect(text.status == .configuration)
        #expect(
            text.out.first
                == "\(path):4: apps.acme.apns.taem: There is no such key; did you mean team? [unknownKey]")
        // The same when the file was found and not named.
        #expect(await sealbell("config", "check", in: folder).out == text.out)
        let json = try object(await sealbell("config", "check", path, "--json", in: folder).out.first)
        let faults = try #require(json["faults"] as? [[String: Any]])
        #expect(json["ok"] as? Bool == false)
        #expect(faults.map { $0["code"] as? String } == ["unknownKey", "missingKey"])
        #expect(Set(faults.map { $0["line"] as? Int }) == [4])
    }

    @Test("Without a configuration the way on is told")
    func absent() async throws {
        let ended = await sealbell("config", "check", "--config", "none.yaml", in: try TemporaryFolder())
        #expect(ended.status == .configuration && ended.out.first?.contains("[noFile]") == true)
    }

    @Test("Each credential that is absent, open to others or something else is a fault with its path")
    func credentials() async throws {
        let folder = try sound()
        func verdict(_ needle: String) async -> String? {
            await sealbell("config", "check", in: folder).out.first { $0.contains(needle) }
        }
        let key = folder.path + "/apns.p8"
        chmod(key, 0o644)
        #expect(await verdict("key_file")?.contains("chmod 600") == true)
        chmod(key, 0o640)
        #expect(await verdict("key_file")?.hasPrefix("warning") == true)
        try writeFile(
            key, Array("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----".utf8), replacing: true)
        #expect(await verdict("key_file")?.contains("Give the .p8 file") == true)
        unlink(key)
        #expect(await verdict("key_file")?.contains("There is no such file.") == true)
        try writeFile(folder.path + "/bouncer.keys", Array("{}".utf8), replacing: true)
        #expect(await verdict("instances.zulip-main.keys")?.contains("holds no key") == true)
        #expect(await sealbell("config", "check", in: folder).status == .configuration)
    }

    @Test("A service account is judged as the sender would judge it, and its key is never shown")
    func serviceAccount() throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048).pkcs8PEMRepresentation
        func finding(_ members: [String: String]) throws -> Finding? {
            let folder = try TemporaryFolder()
            let path = folder.path + "/fcm.json"
            try writeFile(path, try JSONSerialization.data(withJSONObject: members), replacing: true)
            let text = minimal("    apns:", with: "    fcm: { service_account: \(path) }\n    apns:")
            let findings = FileChecks(World.live.now).check(try load(text))
            return findings.first { $0.subject.contains("service_account") }
        }
        var members = [
            "type": "service_account", "project_id": "p", "client_email": "a@p", "private_key_id": "k",
            "token_uri": "https://t/x", "private_key": key
        ]
        #expect(try finding(members)?.severity == .good)
        members["private_key"] = "-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----\n"
        let bad = try finding(members)
        #expect(bad?.sentence.contains("private key cannot be read") == true)
        #expect(bad?.line.contains("c4n4ry") == false)
        members["type"] = "authorized_user"
        #expect(try finding(members)?.sentence.contains("service account") == true)
    }

    @Test("Storage keys are made once, where the configuration says, and never over others")
    func newStorageKeys() async throws {
        let folder = try sound()
        let made = await sealbell("keys", "new", "storage", in: folder)
        let path = folder.path + "/.config/sealbell/storage.keys"
        #expect(made.status == .done && made.out == [path])
        let bytes = try readFile(path, limitBytes: 4096)
        #expect(throws: Never.self) { try KeyFile.read(path) }
        let again = await sealbell("keys", "new", "storage", in: folder)
        #expect(again.status == .failed && again.err.count == 1)
        #expect(try readFile(path, limitBytes: 4096) == bytes)
        #expect(await sealbell("keys", "new", "storage", "--file", "apns.p8/x", in: folder).status == .failed)
    }

    @Test("A new key is added to the file, the old ones stay, and only the public half is printed")
    func newKey() async throws {
        let folder = try sound()
        let path = folder.path + "/bouncer.keys"
        let before = try BouncerKeysFile.parse(try readSecret(path, limitBytes: 4096))
        let made = await sealbell("keys", "new", "zulip", in: folder)
        #expect(made.status == .done && made.out.count == 1)
        let after = try BouncerKeysFile.parse(try readSecret(path, limitBytes: 4096))
        #expect(
            after.map { Base64.text($0.publicKey) } == before.map { Base64.text($0.publicKey) } + made.out)
        let fresh = await sealbell("keys", "new", "zulip", "--file", "new.keys", "--json", in: folder)
        let key = try #require(try object(fresh.out.first)["public_key"] as? String)
        #expect(
            try BouncerKeysFile.parse(try readSecret(folder.path + "/new.keys", limitBytes: 4096))
                .map { Base64.text($0.publicKey) } == [key])
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/new.keys")
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        // The folder is made, as a person's first command needs it.
        let first = await sealbell("keys", "new", "zulip", "--file", "etc/first.keys", in: folder)
        #expect(first.status == .done)
        #expect(FileManager.default.fileExists(atPath: folder.path + "/etc/first.keys"))
        let blocked = await sealbell("keys", "new", "zulip", "--file", "new.keys/x", in: folder)
        #expect(blocked.status == .failed)
        #expect(await sealbell("keys", "new", "zulip", "--instance", "other", in: folder).status == .usage)
        try writeFile(path, Array("{\"a\": \"b\"}".utf8), replacing: true)
        #expect(await sealbell("keys", "new", "zulip", in: folder).status == .configuration)
        #expect(try readFile(path, limitBytes: 4096) == Array("{\"a\": \"b\"}".utf8))
    }

    @Test("Commands to a running relay look for it where --at says, else where the configuration says")
    func whereabouts() async throws {
        let folder = try sound()
        let file = folder.path + "/sealbell.yaml"
        let text = Array("state: elsewhere\n".utf8) + (try readFile(file, limitBytes: 1 << 20))
        try writeFile(file, text, replacing: true)
        let configured = await sealbell("origins", "list", in: folder)
        #expect(configured.status == .unavailable)
        #expect(configured.err.first?.contains(folder.path + "/elsewhere;") == true)
        // Where nothing says where, the way to say it is told.
        let empty = try TemporaryFolder()
        let lost = await sealbell("status", in: empty)
        #expect(lost.status == .unavailable && lost.err.first?.contains("--config") == true, "\(lost)")
        let named = await sealbell("origins", "list", "--at", "here", in: folder)
        #expect(named.err.first?.contains(folder.path + "/here;") == true)
        // A configuration that is none leaves the environment's word.
        try writeFile(file, Array("state: [".utf8), replacing: true)
        let environment = ["SEALBELL_STATE": folder.path + "/there"]
        let fallen = await sealbell("origins", "list", in: folder, environment: environment)
        #expect(fallen.err.first?.contains(folder.path + "/there;") == true)
        // Where nothing does, what is wrong with it is what is wrong.
        let broken = await sealbell("origins", "list", in: folder)
        #expect(broken.status == .configuration)
        #expect(
            broken.err.first?.hasPrefix(file + ":") == true && broken.err.first?.contains("[notYAML]") == true
        )
        #expect(broken.err.last?.contains("--at") == true)
    }

    @Test("Help says what a command does, and how it ends")
    func help() async throws {
        let folder = try TemporaryFolder()
        let check = await sealbell("config", "check", "--help", in: folder).out.joined(separator: " ")
        for word in ["no store is opened", "Ends with 0", "with 1 when", "with 78 when"] {
            #expect(
                check.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(word), "\(check)")
        }
        let quota = await sealbell("origins", "quota", "--help", in: folder).out.joined(separator: " ")
        for word in ["sent later, in order", "ten minutes ahead", "429"] {
            #expect(
                quota.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(word), "\(quota)")
        }
    }
}
