import Foundation
import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

/// `sealbell keys list` and `keys retire` at a running relay.
@Suite("A bouncer's keyring", .timeLimit(.minutes(30)))
struct KeyringTests {
    /// The stage's configuration as a file, by which the command finds the keys.
    private func writeConfiguration(_ stage: RelayStage) throws -> String {
        let path = stage.folder.path + "/keyring.yaml"
        try Data(RelayStage.text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func keys(_ stage: RelayStage) throws -> [String] {
        let bytes = try #require(FileManager.default.contents(atPath: stage.folder.path + "/bouncer.keys"))
        return try BouncerKeysFile.parse(Secret(Array(bytes))).map { Base64.text($0.publicKey) }
    }

    @Test("A key in use is retired only on a second word, another one at once, and the last one never")
    func retiring() async throws {
        try await RelayStage.with { stage in
            let file = stage.folder.path + "/bouncer.keys"
            try await stage.run { relay in
                let person = try Operator(relay)
                let used = relay.bouncerKey
                let server = try await relay.server()
                for _ in 0..<3 { _ = try await relay.phone(.apns, of: server) }
                let list = try await person.json("keys", "list")
                let key = try #require(list["keys"]?[0])
                #expect(key["public_key"]?.string == used && key["uses"]?["recent"]?.int64 == 3)
                #expect(key["uses"]?["days"]?.array?.count == 1 && key["from"]?.string == "the running relay")
                let lines = await person.run("keys", "list").out
                #expect(lines.count == 3 && lines[1] == "  " + used, "\(lines)")
                #expect(lines.last?.contains("3 registrations in 30 days") == true)

                let config = try writeConfiguration(stage)
                func retire(_ key: String, _ more: String...) async -> (status: Ending, said: String) {
                    let ran = await person.run(["keys", "retire", key, "--config", config] + more)
                    return (ran.status, (ran.out + ran.err).joined(separator: "\n"))
                }
                let only = await retire(used)
                #expect(only.status == .failed && only.said.contains("only key"))
                let other = try addKey(to: file)
                let inUse = await retire(used)
                #expect(inUse.status == .failed && inUse.said.contains("3 registrations used this key"))
                #expect(try keys(stage).count == 2)
                let both = try await person.json(
                    "keys", "list", "--config", config, "--instance", "zulip-main")
                let states = try #require(both["keys"]?.array).map { row in
                    [row["public_key"], row["in_force"], row["uses"]?["recent"]].map {
                        $0?.serialized() ?? []
                    }
                }
                #expect(
                    states.map { $0.map { String(decoding: $0, as: UTF8.self) } }
                        == [["\"\(used)\"", "true", "3"], ["\"\(other)\"", "false", ""]])
                #expect(await retire("AAAA").status == .failed)
                let done = await retire(other)
                #expect(done.status == .done, "\(done.said)")
                #expect(try keys(stage) == [used])
                _ = try addKey(to: file)
                #expect(await retire(used, "--anyway").status == .done)
                #expect(try !keys(stage).contains(used))
            }
        }
    }

    private func addKey(to file: String) throws -> String {
        let bytes = try #require(FileManager.default.contents(atPath: file))
        let made = X25519KeyPair.generate(.live)
        let text = BouncerKeysFile.text(try BouncerKeysFile.parse(Secret(Array(bytes))) + [made])
        try text.reveal { raw in try writeFile(file, raw, replacing: true) }
        return Base64.text(made.publicKey)
    }
}
