import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import ZulipPush

@testable import RelayProgram

@Suite(
    "A disk that is full, or turns read-only", .serialized, .timeLimit(.minutes(30)),
    .enabled(if: SmallDisk.isToBeHad, "a file system of its own can be mounted by root alone"))
struct FullDiskTests {
    /// How long a call is held before it is refused: each of these is.
    private static let hold = Duration.seconds(1)

    /// A relay on a file system of 32 MB, with phones and a push service that is out.
    private func stage(_ body: (RelayStage, SmallDisk) async throws -> Void) async throws {
        let disk = SmallDisk()
        defer { disk.remove() }
        try await RelayStage.with(prepare: { try disk.mount(at: $0 + "/state") }) { stage in
            try await body(stage, disk)
        }
    }

    /// Sends until the relay refuses; how many it has accepted.
    private func sendUntilRefused(
        _ server: DemoServer, _ phones: [DemoApp], from first: Int64, _ relay: RunningRelay
    ) async throws -> Int64 {
        var id = first
        // Ends: the disk is full, and what is in the log already bounds what fits over it.
        while true {
            let answer = try await server.notify(DemoApp.message(id, "m"), phones, relay)
            if answer.status != 200 {
                #expect(answer.status == 503 && answer.code == "SERVICE_UNAVAILABLE")
                #expect(answer.headers.contains { $0.name.lowercased() == "retry-after" })
                return id - first
            }
            id += 1
            try Task.checkCancellation()
        }
    }

    /// Sends all of them at once: each is answered only when its first attempt has had its time.
    private func send(
        _ ids: ClosedRange<Int64>, _ server: DemoServer, _ phones: [DemoApp], _ relay: RunningRelay
    ) async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for id in ids {
                group.addTask { try await server.notify(DemoApp.message(id, "m"), phones, relay).status }
            }
            for try await status in group { #expect(status == 200) }
        }
    }

    private func health(_ relay: RunningRelay, until status: Int) async throws -> String {
        var said = ""
        try await asked(for: "health of \(status)") {
            let answer = try await relay.admin("/health/ready")
            said = String(decoding: answer.body, as: UTF8.self)
            return answer.status == status
        }
        return said
    }

    @Test("Full: refused in one way, nothing acknowledged is lost or doubled, and it goes on by itself")
    func full() async throws {
        try await stage { stage, disk in
            try await stage.run(hold: Self.hold) { relay in
                let server = try await relay.server()
                let phones = try await [relay.phone(.apns, of: server), relay.phone(.apns, of: server)]
                stage.apns.turn { $0.shutdownUntil = World.live.now() + .seconds(3_600) }
                #expect(try await server.notify(DemoApp.message(1, "m"), phones, relay).status == 200)
                try disk.fill()
                var accepted = 1 + (try await sendUntilRefused(server, phones, from: 2, relay))
                #expect(try await health(relay, until: 503).contains("store"))
                let status = String(decoding: try await relay.admin("/status").body, as: UTF8.self)
                #expect(status.contains("store_failing"))
                // The push service comes back while answers cannot be written down.
                stage.apns.turn { $0.shutdownUntil = nil }
                try disk.empty()
                _ = try await health(relay, until: 200)
                let answer = try await server.notify(DemoApp.message(1_000_000, "m"), phones, relay)
                #expect(answer.status == 200, "it takes pushes again, and nobody has restarted it")
                accepted += 1
                try await relay.drained()
                #expect(stage.apns.counters.doubles == 0)
                #expect(stage.apns.counters.accepted == Int(accepted) * phones.count)
            }
            #expect(
                !stage.log.all.contains { $0.contains("SQLite") }, "the library's own words may quote values")
        }
    }

    @Test("Answers that come while the disk is full are settled later, and nothing is sent again")
    func settling() async throws {
        try await stage { stage, disk in
            // The lease must last for what is sent behind the refusal.
            try await stage.run(hold: .zero) { relay in
                let server = try await relay.server()
                let phones = try await [relay.phone(.apns, of: server), relay.phone(.apns, of: server)]
                stage.apns.turn { $0.errorShare = 1 }
                var id: Int64 = 20
                try await send(1...id, server, phones, relay)
                try disk.fill()
                id += try await sendUntilRefused(server, phones, from: id + 1, relay)
                stage.apns.turn { $0.errorShare = 0 }
                // What has been answered cannot be written down, and is not sent again before it is.
                try await asked(for: "answers that wait for the disk, and nothing under way") {
                    guard try await relay.inFlight() == 0 else { return false }
                    return try await relay.settleBacklog() > 0
                }
                #expect(try await relay.owed() == Int(id) * phones.count)
                try disk.empty()
                try await relay.drained()
                #expect(stage.apns.counters.doubles == 0)
                #expect(stage.apns.counters.accepted == Int(id) * phones.count)
            }
        }
    }

    @Test("Read-only at once: refused, unready, ended in order; after a repair all that was owed arrives")
    func readOnly() async throws {
        try await stage { stage, disk in
            var server: DemoServer?
            var phones: [DemoApp] = []
            var accepted: Int64 = 0
            try await stage.run(hold: Self.hold) { relay in
                let joined = try await relay.server()
                server = joined
                phones = try await [relay.phone(.apns, of: joined), relay.phone(.apns, of: joined)]
                stage.apns.turn { $0.shutdownUntil = World.live.now() + .seconds(3_600) }
                try await send(1...30, joined, phones, relay)
                accepted = 30
                try disk.turnReadOnly()
                accepted += try await sendUntilRefused(joined, phones, from: 31, relay)
                #expect(accepted == 30, "the first one already cannot be written")
                #expect(try await health(relay, until: 503).contains("store"))
            }
            // It cannot start there, says why, and changes nothing.
            let before = try disk.contents()
            do {
                try await stage.run { _ in Issue.record("it started on a read-only file system") }
            } catch let fault as CommandFailure {
                #expect(fault.lines.contains { $0.contains("read-only") })
            }
            #expect(try disk.contents() == before)
            try disk.repair()
            stage.apns.turn { $0.shutdownUntil = nil }
            try await stage.run { relay in
                try await relay.drained()
                #expect(stage.apns.counters.accepted == Int(accepted) * phones.count)
                #expect(stage.apns.counters.doubles == 0)
                let answer = try await #require(server).notify(DemoApp.message(99, "m"), phones, relay)
                #expect(answer.status == 200)
            }
        }
    }
}

/// A file system of 32 MB in a file, mounted over a folder: ext4, which turns read-only at a fault of its own
/// as real disks do.
final class SmallDisk {
    private let image = FileManager.default.temporaryDirectory.path + "/sealbell-disk-\(UUID().uuidString)"
    private var folder: String?

    /// Whether this machine and user can have one.
    static let isToBeHad: Bool = {
        guard geteuid() == 0 else { return false }
        let disk = SmallDisk()
        let folder = disk.image + "-probe"
        defer {
            disk.remove()
            // What was never made need not go.
            try? FileManager.default.removeItem(atPath: folder)
        }
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try disk.mount(at: folder)
            return true
        } catch {
            return false
        }
    }()

    struct Fault: Error { let command: String }

    func mount(at folder: String) throws {
        try run("truncate", "-s", "32M", image)
        try run("mkfs.ext4", "-q", "-F", "-m", "0", image)
        try run("mount", "-o", "loop,errors=remount-ro", image, folder)
        self.folder = folder
    }

    private var place: String { get throws { try folder ?? { throw Fault(command: "mount") }() } }

    /// Leaves not one block.
    func fill() throws {
        let path = try place + "/ballast"
        guard let file = fopen(path, "a") else { throw Fault(command: "fill") }
        // Unbuffered, down to single bytes: what is left is less than a block.
        setvbuf(file, nil, _IONBF, 0)
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        for size in [1 << 16, 4_096, 1] { while fwrite(zeros, 1, size, file) == size {} }
        fclose(file)
    }

    func empty() throws { try FileManager.default.removeItem(atPath: place + "/ballast") }

    /// As after a fault of the device.
    func turnReadOnly() throws {
        let mounts = try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)
        let folder = try place
        let line = mounts.split(separator: "\n").first {
            $0.split(separator: " ").dropFirst().first == folder[...]
        }
        guard let device = line?.split(separator: " ").first?.split(separator: "/").last,
            let file = fopen("/sys/fs/ext4/\(device)/trigger_fs_error", "w")
        else { throw Fault(command: "trigger_fs_error") }
        fputs("1", file)
        // The kernel says that the file system has failed: that is what was asked for.
        fclose(file)
    }

    /// Unmounts, checks and mounts anew, as an operator would.
    func repair() throws {
        let folder = try place
        try run("umount", folder)
        // 1: faults were mended.
        try run("e2fsck", "-fy", image, allowed: [0, 1])
        try run("mount", "-o", "loop,errors=remount-ro", image, folder)
    }

    /// Names and sizes of all files.
    func contents() throws -> [String: Data] {
        let folder = try place
        var found: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            found[name] = FileManager.default.contents(atPath: folder + "/" + name)
        }
        return found
    }

    func remove() {
        // Lazily: whatever has a file open there goes with its process.
        if let folder { try? run("umount", "-l", folder) }
        folder = nil
        // What was never made need not go.
        try? FileManager.default.removeItem(atPath: image)
    }

    private func run(_ name: String, _ arguments: String..., allowed: Set<Int32> = [0]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.environment = ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard allowed.contains(process.terminationStatus) else { throw Fault(command: name) }
    }
}
