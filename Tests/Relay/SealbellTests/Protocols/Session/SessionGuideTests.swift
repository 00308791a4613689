import Crypto
import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing

@testable import RelayProgram

@Suite("docs/guides/session.md", .timeLimit(.minutes(30)))
struct SessionGuideTests {
    private func page() throws -> String {
        try String(contentsOf: repositoryRoot().appending(path: "docs/guides/session.md"), encoding: .utf8)
    }

    private func run(_ arguments: String..., in folder: TemporaryFolder) async -> CommandRun {
        await .of(arguments, in: folder.path, home: folder.path)
    }

    /// Does the page's first two steps, with the state directory in the folder too.
    private func steps(in folder: TemporaryFolder) async throws {
        #expect(await run("keys", "new", "storage", "--file", "storage.keys", in: folder).status == .done)
        let onion = await run("keys", "new", "session", "--file", "onion.key", in: folder)
        #expect(onion.status == .done && onion.lines.contains { $0.contains(#/\b[0-9a-f]{64}\b/#) })
        try writeFile(
            folder.path + "/apns.p8", Array(P256.Signing.PrivateKey().pemRepresentation.utf8), replacing: true
        )
        let account = try ServiceAccount().json(tokenURI: "https://oauth2.googleapis.com/token")
        try writeFile(folder.path + "/fcm.json", Array(account.utf8), replacing: true)
        let text = String(try #require(try page().firstMatch(of: #/```yaml\n((?:.|\n)*?)```/#)).1)
            .replacing("/var/lib/sealbell", with: folder.path + "/state")
            .replacing("/etc/sealbell", with: folder.path)
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
    }

    @Test("The page's steps give a configuration that is sound, and neither the check nor the doctor writes")
    func sound() async throws {
        let folder = try TemporaryFolder()
        try await steps(in: folder)
        let checked = await run("config", "check", "--config", "sealbell.yaml", in: folder)
        #expect(checked.status == .done, "\(checked.lines)")
        let state = folder.path + "/state"
        #expect(!FileManager.default.fileExists(atPath: state))
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        let again = await run("config", "check", "--config", "sealbell.yaml", in: folder)
        let doctor = await run("doctor", "--offline", "--config", "sealbell.yaml", in: folder)
        #expect(again.lines == checked.lines)
        // The page's ports may be another program's on the machine that tests.
        let faults = doctor.lines.filter { $0.hasPrefix("FAULT") && !$0.contains(" ports ") }
        #expect(faults.isEmpty, "\(doctor.lines)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: state).isEmpty)
    }

    @Test("A core key that is there is looked at, and left as it is")
    func coreKey() async throws {
        let folder = try TemporaryFolder()
        try await steps(in: folder)
        let state = folder.path + "/state"
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        let name = configured("session-main")
        _ = try SessionKeyFile.core(name, state: state, .live)
        let path = SessionKeyFile.corePath(name, state: state)
        let kept = try readFile(path, limitBytes: 1_024)
        let sound = await run("config", "check", "--config", "sealbell.yaml", in: folder)
        #expect(sound.status == .done, "\(sound.lines)")
        #expect(try readFile(path, limitBytes: 1_024) == kept)
        try writeFile(path, Array("broken".utf8), replacing: true)
        let broken = await run("config", "check", "--config", "sealbell.yaml", in: folder)
        #expect(broken.status == .configuration && broken.lines.contains { $0.contains(path) })
        #expect(try readFile(path, limitBytes: 1_024) == Array("broken".utf8))
    }

    @Test("Every word of the command line and of the configuration that the page names is one")
    func words() async throws {
        let page = try page()
        for key in page.matches(of: #/`(onion_key|oxend|services|metadata|plain_http)`/#) {
            #expect(SessionProtocol.keys.contains(String(key.1)))
        }
        let help = await run("device", "session", "subscribe", "--help", in: try TemporaryFolder())
        for option in page.matches(of: #/`?(--(?:state|service|server|onion-key|token-file))\b/#) {
            #expect(help.lines.joined().contains(option.1), "\(option.1)")
        }
    }
}
