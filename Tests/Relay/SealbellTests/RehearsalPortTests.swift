import ArgumentParser
import Foundation
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

@Suite("The guides' commands", .timeLimit(.minutes(30)))
struct RehearsalPortTests {
    @Test("A rehearsal with the serving relay's own configuration takes free ports, and says so")
    func besideARelay() async throws {
        let folder = try TemporaryFolder()
        // Any two that are free at the moment.
        let first = try Program(
            ["serve", "--sandbox", "--set", "log.format=json", "--state", "first"]
                + ["listeners.public.bind=127.0.0.1:0", "listeners.admin.bind=127.0.0.1:0"].flatMap {
                    ["--set", $0]
                }, in: folder.path)
        #expect(await first.says(#""event":"started""#))
        guard case .running(let file) = try RunFile.find(state: folder.path + "/first") else {
            throw FileFault.missing
        }
        let binds = try ["public", "admin"].map { name in
            let url = try #require(file.urls[name])
            return "listeners.\(name).bind=\(url.dropFirst("http://".count))"
        }
        let second = try Program(
            ["serve", "--sandbox", "--set", "log.format=json", "--state", "second"]
                + binds.flatMap { ["--set", $0] }, in: folder.path)
        #expect(await second.says(#""event":"listening elsewhere""#), "\(second.text)")
        #expect(await second.says(#""event":"started""#), "\(second.text)")
        guard case .running(let other) = try RunFile.find(state: folder.path + "/second") else {
            throw FileFault.missing
        }
        #expect(other.urls["public"] != file.urls["public"])
        #expect(other.purposes?["sandbox-nextcloud"]?.contains("identity proofs") == true)
        // A reload of what it was given moves nothing.
        second.signal(SIGHUP)
        #expect(await second.says(#""event":"configuration reloaded""#), "\(second.text)")
        for program in [second, first] {
            await program.stop()
        }
    }

    @Test("Every command line of every guide is one that sealbell takes")
    func commandLines() throws {
        let guides = repositoryRoot().appending(path: "docs/guides")
        var seen = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: guides.path).sorted() {
            let page = try String(contentsOf: guides.appending(path: file), encoding: .utf8)
            for line in Self.commands(page) {
                seen += 1
                #expect(throws: Never.self, "\(file): \(line)") {
                    _ = try Sealbell.parseAsRoot(Self.words(try Self.filled(line)))
                }
            }
        }
        #expect(seen > 30)
    }

    /// With keys where the page leaves room for the reader's own.
    private static func filled(_ line: String) throws -> String {
        let digits = String(repeating: "4", count: 64)
        // The generator of secp256k1 (SEC 2, 2.4.1).
        let point =
            "0x0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
            + "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8"
        return line.replacing("--onion-key DIGITS", with: "--onion-key " + digits)
            .replacing("--server 0x04…", with: "--server " + point)
            .replacing(":PORT", with: ":7777").replacing("--group CODE", with: "--group " + digits)
            .replacing("--server KEY", with: "--server " + point.dropFirst(4).prefix(64))
    }

    /// Commands of the page's code blocks, each in one line.
    private static func commands(_ page: String) -> [String] {
        var commands: [String] = []
        var open: String?
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if let begun = open {
                open = begun + " " + text
            } else if text.hasPrefix("sealbell "), text.count < line.count {
                open = String(text)
            }
            if let whole = open, !whole.hasSuffix("\\") {
                commands.append(whole.replacing("\\ ", with: " "))
                open = nil
            }
        }
        return commands
    }

    /// As a shell splits them, without redirections, comments and what is piped on.
    private static func words(_ line: String) -> [String] {
        var words: [String] = []
        // What stands in quotes is one word, whatever it is.
        let line = line.replacing(#/"[^"]*"/#) { $0.output.replacing(" ", with: "") }
        for word in line.split(separator: " ").dropFirst() {
            if ["|", "<", ">", "#", "&&"].contains(word) || word.hasPrefix("#") { break }
            words.append(String(word).replacing("\"", with: "").replacing("'", with: ""))
        }
        return words
    }
}
