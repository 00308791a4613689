import Foundation
import Logging
import PushModel
import PushTesting
import Synchronization
import Testing

@testable import RelayProgram

/// Lines that were written.
final class Lines: Sendable {
    private let held = Mutex<[String]>([])
    var all: [String] { held.withLock { $0 } }
    func add(_ line: String) { held.withLock { $0.append(line) } }
    func add(_ bytes: [UInt8]) { add(String(decoding: bytes, as: UTF8.self)) }
}

@Suite("The process around the relay")
struct RuntimeTests {
    @Test("Each ending has the number that the page promises")
    func exitCodes() {
        #expect(Ending.allCases.map(\.code) == [0, 1, 64, 69, 70, 78])
    }

    @Test("A run file is private, says who runs, and goes with its process")
    func runFile() throws {
        let folder = try TemporaryFolder()
        #expect(try RunFile.find(state: folder.path) == .none)
        let file = RunFile(
            urls: ["public": "http://127.0.0.1:8480"], ca: "-----BEGIN CERTIFICATE-----\n",
            publicKeys: ["zulip-main": ["AAAA"]], apps: ["acme": ["org.acme.chat"]])
        try file.write(state: folder.path)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/run.json")
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(try RunFile.find(state: folder.path) == .running(file))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["run.json"])
        let object = try JSONSerialization.jsonObject(
            with: Data(contentsOf: URL(filePath: folder.path + "/run.json")))
        let keys = try #require(object as? [String: Any]).keys.sorted()
        #expect(keys == ["apps", "ca", "pid", "pid_start", "public_keys", "urls"])
        file.remove(state: folder.path)
        #expect(try RunFile.find(state: folder.path) == .none)
    }

    @Test("A process that is gone, or whose number another one has now, has left a stale file")
    func stale() throws {
        let folder = try TemporaryFolder()
        let child = Process()
        child.executableURL = URL(filePath: "/bin/true")
        try child.run()
        child.waitUntilExit()
        var file = RunFile(urls: [:], ca: nil, publicKeys: [:], apps: [:], pid: child.processIdentifier)
        try file.write(state: folder.path)
        #expect(try RunFile.find(state: folder.path) == .stale(pid: child.processIdentifier))
        file = RunFile(urls: [:], ca: nil, publicKeys: [:], apps: [:])
        file.pidStart += 1
        try file.write(state: folder.path)
        #expect(try RunFile.find(state: folder.path) == .stale(pid: file.pid))
    }

    @Test("The file of a process that came later is not taken away, and half a file is no answer")
    func foreign() throws {
        let folder = try TemporaryFolder()
        let mine = RunFile(urls: [:], ca: nil, publicKeys: [:], apps: [:])
        let later = RunFile(urls: ["public": "x"], ca: nil, publicKeys: [:], apps: [:], pid: 1)
        try later.write(state: folder.path)
        mine.remove(state: folder.path)
        #expect(try RunFile.find(state: folder.path) == .running(later))
        try writeFile(folder.path + "/run.json", Array("{\"pid\": 1".utf8), replacing: true)
        #expect(throws: FileFault.broken) { try RunFile.find(state: folder.path) }
    }

    @Test("A state directory has one holder, and is free again after it")
    func stateDirectory() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/a/b"
        var holder: StateDirectory? = try StateDirectory(claiming: path)
        #expect(holder?.path == path)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
        #expect(throws: StateDirectory.Fault.taken) { try StateDirectory(claiming: path) }
        holder = nil
        #expect(throws: Never.self) { try StateDirectory(claiming: path) }
        try writeFile(folder.path + "/file", [1], replacing: false)
        #expect(throws: StateDirectory.Fault.file(.exists)) {
            try StateDirectory(claiming: folder.path + "/file")
        }
    }

    @Test("A file is written whole or not at all, and not over another unless asked to")
    func files() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/f"
        try writeFile(path, [1, 2, 3], replacing: false)
        #expect(throws: FileFault.exists) { try writeFile(path, [4], replacing: false) }
        #expect(try readFile(path, limitBytes: 3) == [1, 2, 3])
        #expect(throws: FileFault.tooLarge) { try readFile(path, limitBytes: 2) }
        #expect(throws: FileFault.missing) { try readFile(folder.path + "/g", limitBytes: 2) }
        #expect(throws: FileFault.missing) {
            try writeFile(folder.path + "/no/such", [1], replacing: true)
        }
        #expect(throws: FileFault.notAFile) { try readFile(folder.path, limitBytes: 2) }
        #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
        #expect(throws: FileFault.notAFile) { try readFile(folder.path + "/pipe", limitBytes: 2) }
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: folder.path)) == ["f", "pipe"])
        for fault in FileFault.allCases { #expect(fault.sentence.hasSuffix(".")) }
    }

    @Test(
        "A file that root replaces keeps its owner",
        .enabled(if: geteuid() == 0, "root alone gives files away"))
    func owner() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/keys"
        try writeFile(path, [1], replacing: true)
        #expect(chown(path, 1, 2) == 0)
        try writeFile(path, [2], replacing: true)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == 1)
        #expect((attributes[.groupOwnerAccountID] as? NSNumber)?.intValue == 2)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    }

    @Test("Core dumps are off and files are many")
    func limits() throws {
        #expect(ProcessLimits.forbidCoreDumps())
        #expect(ProcessLimits.raiseOpenFiles() >= 256)
        let text = try String(contentsOfFile: "/proc/self/limits", encoding: .utf8)
        let core = try #require(text.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").filter { $0 == "0" }.count == 2)
    }
}

@Suite("What the log says")
struct LogSinkTests {
    private let time = UnixTime(milliseconds: 1_795_257_671_042)

    private func sink(_ form: LogSink.Form, _ level: LogLevel = .info) -> (LogSink, Lines) {
        let lines = Lines()
        let time = time
        return (LogSink(level: level, form: form, now: { time }, write: { lines.add($0) }), lines)
    }

    @Test("One event is one line of text, or one object of JSON")
    func forms() throws {
        let lane = try #require(LaneName("acme/apns/production"))
        let (text, textLines) = sink(.text)
        text.journal.note(
            "lane.halted", [.lane: lane, .count: 3, .after: Duration.seconds(2)], level: .warning)
        #expect(
            textLines.all == [
                "2026-11-21T10:41:11.042Z warning lane.halted lane=acme/apns/production count=3 "
                    + "after=2000ms\n"
            ])
        let (json, jsonLines) = sink(.json)
        json.journal.note("lane.halted", [.lane: lane, .count: 3], level: .warning)
        let object = try JSONSerialization.jsonObject(with: Data(try #require(jsonLines.all.first).utf8))
        let members = try #require(object as? [String: Any])
        #expect(members["time"] as? String == "2026-11-21T10:41:11.042Z")
        #expect(members["level"] as? String == "warning" && members["event"] as? String == "lane.halted")
        #expect(members["lane"] as? String == "acme/apns/production" && members["count"] as? Int == 3)
    }

    @Test("Quieter events than the level are dropped, and a reload changes the level")
    func levels() {
        let (sink, lines) = sink(.text, .warning)
        let journal = sink.journal
        journal.note("quiet")
        #expect(lines.all.isEmpty)
        sink.change(LogConfiguration(level: .debug, format: .auto), facts())
        journal.note("loud", level: .debug)
        #expect(lines.all.count == 1 && lines.all[0].hasPrefix("{"))
    }

    @Test("Nothing that may be said can break a line or a JSON text")
    func hostile() throws {
        struct Odd: LogSafe { let logText = "a\"b\\c\n\u{0}d" }
        let (sink, lines) = sink(.json)
        sink.journal.note("odd", [.note: Odd()])
        #expect(lines.all[0].filter { $0 == "\n" }.count == 1)
        let object = try JSONSerialization.jsonObject(with: Data(lines.all[0].utf8))
        #expect((object as? [String: Any])?["note"] as? String == "a\"b\\c??d")
    }

    @Test("Moments are written as RFC 3339 has them")
    func timestamps() {
        #expect(timestamp(UnixTime(seconds: 0)) == "1970-01-01T00:00:00.000Z")
        #expect(timestamp(UnixTime(seconds: 951_782_400)) == "2000-02-29T00:00:00.000Z")
        #expect(timestamp(UnixTime(seconds: 4_107_542_399)) == "2100-02-28T23:59:59.000Z")
        #expect(timestamp(.distantFuture) == "9999-12-31T23:59:59.999Z")
        let formatter = ISO8601DateFormatter()
        for day in stride(from: Int64(0), to: 60_000, by: 37) {
            let seconds = day * 86_400 + day
            let expected = formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
            #expect(timestamp(UnixTime(seconds: seconds)).prefix(19) == expected.prefix(19))
        }
    }

    @Test("What libraries say is counted once a minute and never repeated")
    func libraries() {
        let (sink, lines) = sink(.text, .debug)
        let clock = Mutex(ContinuousClock.now)
        var log = LibraryLog(sink.journal, instant: { clock.withLock { $0 } })
        log[metadataKey: "token"] = "s3cret"
        for _ in 0..<5 {
            log.log(
                event: LogEvent(
                    level: .error, message: "POST /3/device/s3cret failed", metadata: ["url": "s3cret"],
                    source: "x", file: "f", function: "g", line: 1))
        }
        log.log(
            event: LogEvent(
                level: .info, message: "s3cret", metadata: nil, source: "x", file: "f", function: "g", line: 1
            ))
        #expect(lines.all.count == 1)
        clock.withLock { $0 += .seconds(61) }
        log.log(
            event: LogEvent(
                level: .critical, message: "s3cret", metadata: nil, source: "x", file: "f", function: "g",
                line: 1))
        #expect(lines.all.count == 2 && lines.all[1].contains("count=5"))
        #expect(!lines.all.joined().contains("s3cret"))
    }
}
