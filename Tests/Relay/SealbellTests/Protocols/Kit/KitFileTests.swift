import Foundation
import PushModel
import PushTesting
import Testing
import WireFormats

@testable import RelayProgram

/// A party with all that a row can keep.
private struct Party: KitParty {
    static let limitBytes = 1 << 10
    static let noun = "party"

    let file: HeldFile
    var name: String
    var secret: Secret?
    var children: [KitObject] = []

    init(_ name: String, _ file: HeldFile) { (self.name, self.file) = (name, file) }

    init?(_ row: KitObject, _ file: HeldFile) throws {
        guard let name = row.text("name"), let children = try row.rows("children", atMost: 2) else {
            return nil
        }
        (self.name, secret, self.children, self.file) = (name, row["secret"], children, file)
    }

    var row: KitObject { ["name": name, "secret": secret, "children": KitObject.text(children)] }
}

@Suite("The file of a party that the command line plays", .timeLimit(.minutes(30)))
struct KitFileTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/party.json" }

    init() throws { folder = try TemporaryFolder() }

    @Test("It has what was written, for its owner alone, and nothing lies beside it")
    func keeping() throws {
        var party = Party("Ada \"A\" \u{1F514}\n", HeldFile(path))
        party.secret = Secret("s\\e/c\u{7F}".utf8)
        party.children = [["name": "one", "none": nil as String?], ["name": "two"]]
        #expect(!Party.isThere(path))
        try party.write()
        party.name += "!"
        try party.write()
        #expect(Party.isThere(path))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["party.json"])
        let text = try readSecret(path, limitBytes: Party.limitBytes)
        let read = try #require(try Party(KitObject(text), HeldFile(path)))
        #expect(read.name == party.name && read.secret?.word == party.secret?.word)
        #expect(read.children.map { $0.text("name") } == ["one", "two"])
        #expect(read.children.allSatisfy { $0["none"] == nil })
        #expect(read.row.text.word == party.row.text.word)
    }

    @Test("Only one owner has it, over each replacement, until that owner is gone")
    func holding() throws {
        try Party("first", HeldFile(path)).write()
        var one: HeldFile? = HeldFile(path)
        _ = try one?.read(limitBytes: 100)
        let other = HeldFile(path)
        #expect(throws: FileFault.taken) { try other.read(limitBytes: 100) }
        // The new file has another number, and is held as well.
        try one?.write(Secret("second".utf8))
        #expect(throws: FileFault.taken) { try other.read(limitBytes: 100) }
        // Who has read nothing replaces nothing.
        #expect(throws: FileFault.exists) { try other.write(Secret("third".utf8)) }
        one = nil
        #expect(try other.read(limitBytes: 100).word == "second")
        try other.write(Secret("third".utf8))
        #expect(try readSecret(path, limitBytes: 100).word == "third")
    }

    @Test(
        "Where a file system has no hard links it is new all the same, held, and takes no name that is taken",
        arguments: [EPERM, EACCES, ENOTSUP, ENOSYS, EMLINK])
    func withoutLinks(code: Int32) throws {
        let linking: @Sendable (String, String) -> Int32 = { _, _ in
            errno = code
            return -1
        }
        let one = HeldFile(path, linking: linking)
        try one.write(Secret("first".utf8))
        #expect(try readSecret(path, limitBytes: 100).word == "first")
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(throws: FileFault.taken) { try HeldFile(path).read(limitBytes: 100) }
        #expect(throws: FileFault.exists) { try HeldFile(path, linking: linking).write(Secret("x".utf8)) }
        try one.write(Secret("second".utf8))
        #expect(try readSecret(path, limitBytes: 100).word == "second")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["party.json"])
    }

    @Test("Any other fault of a link is said, and leaves nothing", arguments: [ENOSPC, EIO])
    func brokenLink(code: Int32) throws {
        let file = HeldFile(path) { _, _ in
            errno = code
            return -1
        }
        #expect(throws: code == EIO ? FileFault.broken : .full) { try file.write(Secret("x".utf8)) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("A command that finds it held says so in one line, and ends with 69")
    func twoCommands() async throws {
        let file = HeldFile(path)
        try file.write(Secret("{}".utf8))
        for protocolName in ["nextcloud", "session", "status"] {
            let word = protocolName == "session" ? "unsubscribe" : "unregister"
            let run = await CommandRun.of(
                ["device", protocolName, word, "--state", "party.json"], in: folder.path)
            #expect(run.status == .unavailable && run.out.isEmpty)
            #expect(run.err == ["\(path): \(FileFault.taken.sentence)"])
        }
    }

    @Test(
        "What a party has not written is named by its file alone",
        arguments: [
            "", "no JSON, topsecret", "[]", #"{"name":1}"#, #"{"name":"topsecret"}"#,
            #"{"name":"topsecret","children":"[{},{},{}]"}"#, #"{"name":"a","children":"[]"}x"#,
            #"{"name":"a","children":"[]","more":{"topsecret":"b"}}"#
        ])
    func foreign(text: String) throws {
        try writeFile(path, Array(text.utf8), replacing: true)
        let failure = #expect(throws: CommandFailure.self) { try Party(file: path) }
        #expect(failure?.lines == ["\(path): It holds no party of this command's."])
        #expect(failure?.status == .failed)
    }

    @Test("A file above its bound is none, and one that is not there is said to be missing")
    func bounds() throws {
        let missing = #expect(throws: CommandFailure.self) { try Party(file: path) }
        #expect(missing?.lines == ["\(path): \(FileFault.missing.sentence)"])
        let long = String(repeating: "a", count: Party.limitBytes)
        try writeFile(path, Array(#"{"name":"\#(long)","children":"[]"}"#.utf8), replacing: true)
        let large = #expect(throws: CommandFailure.self) { try Party(file: path) }
        #expect(large?.lines == ["\(path): \(FileFault.tooLarge.sentence)"])
    }
}
