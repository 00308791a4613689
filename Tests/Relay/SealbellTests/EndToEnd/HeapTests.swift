import Foundation
import NIOCore
import PushModel
import PushTesting
import Synchronization
import Testing
import WebClient
import ZulipPush

@testable import RelayProgram

/// What a relay takes of the machine's memory, and gives back.
@Suite("Memory that was needed for a while", .timeLimit(.minutes(30)))
struct HeapTests {
    @Test("A trim comes once memory has grown and grows no more, and again only behind more growth")
    func watch() {
        var watch = TrimPolicy(Self.bytes(60))
        /// Whether a trim comes at each of these looks, in mebibytes.
        func look(_ sizes: Int...) -> [Bool] { sizes.map { watch.look(Self.bytes($0)) } }
        // Not worth it, then still growing, then calm.
        #expect(look(70, 70, 90, 90) == [false, false, false, true])
        watch.trimmed(Self.bytes(85))
        #expect(look(86, 86, 86, 86) == [false, false, false, false], "it is needed, then")
        #expect(look(50, 70, 68) == [false, false, true], "the least counts, not what the last trim left")
    }

    private static func bytes(_ mebibytes: Int) -> Int { mebibytes << 20 }

    @Test("The keeper looks every ten seconds, and trims when the watch says so")
    func keeper() async throws {
        let clock = ManualClock()
        let resident = Noted(60 << 20)
        let trims = Noted(0)
        let unmaps = Noted(0)
        let keeper = HeapKeeper(
            world: clock.world(seed: 1), resident: { resident.value },
            trim: { trims.change { $0 += 1 } }, unmapStart: { unmaps.change { $0 += 1 } })
        try await beside(keeper.run) {
            for bytes in [90 << 20, 90 << 20, 90 << 20] {
                await clock.sleepers(atLeast: 1)
                resident.set(bytes)
                clock.advance(by: HeapKeeper.pause)
            }
            await clock.sleepers(atLeast: 1)
            #expect(trims.value == 1)
            #expect(unmaps.value == 1, "once, behind the start")
        }
    }

    /// Resident memory of another process in bytes.
    private func resident(_ program: Program) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(program.pid)/statm", encoding: .utf8)
        let words = text.split(separator: " ")
        return (Int(words[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    @Test("On the C library's own heap nothing is said, and what is given back is wiped")
    func own() {
        #expect(ProcessMemory.isWiped)
        #expect(ProcessMemory.foreignHeap == nil)
    }

    #if os(Linux)
    @Test("What the start has read leaves the resident set, and all goes on from the files")
    func start() throws {
        let kept = Noted([1, 2, 3])
        let before = try #require(ProcessMemory.pages)
        #expect(ProcessMemory.unmapStart() > 1 << 20, "this program's own text alone is more")
        let after = try #require(ProcessMemory.pages)
        #expect(after.files < before.files)
        // Code, constants and what was written: the first two are read from the files again.
        #expect(kept.value == [1, 2, 3])
        #expect("\(Self.bytes(3))".utf8.elementsEqual("3145728".utf8))
    }
    #endif

    @Test("What large bodies took is the system's again when their senders have gone")
    func bodies() async throws {
        let folder = try TemporaryFolder()
        let text = RelayStage.text.replacing("level: debug", with: "level: info")
        try writeFile(folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        let program = try Program(
            ["serve", "--sandbox", "--config", "sealbell.yaml", "--state", "state"], in: folder.path)
        #expect(await program.says(#""event":"started""#))
        let file = try RunFile.running(folder.path + "/state")
        let door = try #require(LocalCall(patient: file.urls["public"]))
        // What it needs for any call at all.
        #expect(try await door.ask("GET", "/api/v1/remotes/").status == 404)
        let before = try resident(program)
        // Three times, for the second and third round are those that stayed.
        for round in 0..<3 {
            var strangers: [Stranger] = []
            for number in 0..<3 {
                let stranger = try await Stranger.connect(to: door.port)
                stranger.send(
                    "POST /api/v1/remotes/server/analytics HTTP/1.1\r\nHost: t\r\n"
                        + "X-Forwarded-For: 203.0.113.\(number)\r\n"
                        + ListenerTests.credentials(round * 3 + number)
                        + "Content-Length: \(ZulipLimits.analyticsBodyBytes)\r\n\r\n")
                stranger.send(String(repeating: "a", count: 14 << 20))
                strangers.append(stranger)
            }
            try await asked(for: "bodies in memory") { try resident(program) > before + (36 << 20) }
            for stranger in strangers { stranger.close() }
            try await asked(for: "their memory given back") { try resident(program) < before + (24 << 20) }
        }
        await program.stop()
    }
}
