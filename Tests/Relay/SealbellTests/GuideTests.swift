import Crypto
import Foundation
import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WireFormats

@testable import RelayProgram

@Suite("docs/guides/marmot.md", .timeLimit(.minutes(30)))
struct MarmotGuideTests {
    private func page() throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: "docs/guides/marmot.md"), encoding: .utf8)
    }

    private func configuration() throws -> String {
        String(try #require(try page().firstMatch(of: #/```yaml\n((?:.|\n)*?)```/#)).1)
    }

    private func run(_ arguments: [String], in folder: TemporaryFolder) async -> (
        status: Ending, said: String
    ) {
        let run = await CommandRun.of(arguments, in: folder.path, home: folder.path)
        return (run.status, run.lines.joined(separator: "\n"))
    }

    @Test("The page's steps, in their order, give a configuration that is sound, and a public key")
    func steps() async throws {
        let folder = try TemporaryFolder()
        let key = await run(["keys", "new", "nostr", "--file", folder.path + "/nostr.key"], in: folder)
        #expect(key.status == .done)
        let printed = try #require(key.said.firstMatch(of: #/[0-9a-f]{64}/#)).0
        let file = try #require(FileManager.default.contents(atPath: folder.path + "/nostr.key"))
        #expect(try NostrKeyFile.parse(Secret(file)).publicKey.hex == printed)
        let again = await run(["keys", "new", "nostr", "--file", folder.path + "/nostr.key"], in: folder)
        #expect(again.status != .done, "an existing file is never overwritten")
        #expect(
            await run(["keys", "new", "storage", "--file", folder.path + "/storage.keys"], in: folder).status
                == .done)
        try writeFile(
            folder.path + "/apns.p8", Array(P256.Signing.PrivateKey().pemRepresentation.utf8), replacing: true
        )
        let account = try ServiceAccount().json(tokenURI: "https://oauth2.googleapis.com/token")
        try writeFile(folder.path + "/fcm.json", Array(account.utf8), replacing: true)
        let text = try configuration().replacing("/var/lib/sealbell", with: folder.path + "/state")
        let path = folder.path + "/sealbell.yaml"
        try writeFile(path, Array(text.utf8), replacing: true)
        let checked = await run(["config", "check", "--config", path], in: folder)
        #expect(checked.status == .done, "\(checked.said)")
        // A change of keys, as the page has it.
        #expect(
            await run(["keys", "new", "nostr", "--file", folder.path + "/nostr-2.key"], in: folder).status
                == .done)
        let turned = text.replacing(
            "key_file: nostr.key", with: "key_file: nostr-2.key\n    old_key_files: [nostr.key]")
        try writeFile(path, Array(turned.utf8), replacing: true)
        let turnedCheck = await run(["config", "check", "--config", path], in: folder)
        #expect(turnedCheck.status == .done, "\(turnedCheck.said)")
    }

    @Test("A key that another server used is taken as 64 digits in a file")
    func foreignKey() throws {
        let pair = Secp256k1KeyPair.generate(.live)
        let digits = pair.secret.reveal { Hex.encode(Array($0)) }
        #expect(try NostrKeyFile.parse(Secret(digits.utf8)).publicKey == pair.publicKey)
    }

    @Test("Every outcome, format and mode that the page names is one")
    func words() throws {
        let page = try page()
        let outcomes = Set(MarmotError.Code.allCases.map(\.rawValue))
        var named: [String] = []
        for line in page.split(separator: "\n") {
            guard let row = line.firstMatch(of: #/outcome ((?:`\w+`(?:, )?)+)/#) else { continue }
            named += row.1.matches(of: #/`(\w+)`/#).map { String($0.1) }
        }
        #expect(named.count >= 4)
        #expect(named.allSatisfy(outcomes.contains), "\(named.filter { !outcomes.contains($0) })")
        for format in TokenFormat.allCases { #expect(page.contains("| `\(format.rawValue)` |")) }
        for mode in MarmotSettings.Mode.allCases { #expect(page.contains(mode.rawValue)) }
    }
}
