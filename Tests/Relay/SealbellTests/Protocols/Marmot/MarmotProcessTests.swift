import Foundation
import MarmotPush
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

#if os(Linux)
@Suite("A notification server that is nothing else, as a process", .timeLimit(.minutes(30)), .serialized)
struct MarmotProcessTests {
    private static func configuration(
        _ stage: RelayStage, relay: String? = nil, _ more: String = ""
    ) throws -> String {
        let sandbox = stage.sandbox
        func url(_ port: Int?) throws -> String { "\"https://127.0.0.1:\(try #require(port))\"" }
        let made = stage.state + "/sandbox"
        let nostr = try #require(relay ?? sandbox.nostr.url)
        return """
            listeners:
              admin: { bind: "127.0.0.1:0" }
            log: { level: debug }
            store: { url: "sqlite:relay.sqlite", keys: storage.keys }
            apps:
              acme:
                apns:
                  team: A1B2C3D4E5
                  key_id: F6G7H8I9J0
                  key_file: \(made)/A1B2C3D4E5-F6G7H8I9J0.p8
                  bundles: [org.acme.chat]
                  environment: learn
                  url: \(try url(sandbox.production.port))
                  sandbox_url: \(try url(sandbox.development.port))
                  ca: \(sandbox.authorityFile)
                fcm:
                  service_account: \(made)/acme-fcm.json
                  url: \(try url(sandbox.fcm.port))
                  ca: \(sandbox.authorityFile)
            instances:
              marmot-main:
                protocol: marmot
                apps: [acme]
                key_file: nostr.key
                relays: ["\(nostr)"]
                ca: \(sandbox.authorityFile)
                \(more)

            """
    }

    private struct Running {
        let stage: RelayStage
        let program: Program
        let admin: LocalCall
        let sender: MarmotSender

        func write(_ text: String) throws {
            try writeFile(stage.folder.path + "/sealbell.yaml", Array(text.utf8), replacing: true)
        }

        func isReady() async throws -> Bool { try await admin.ask("GET", "/health/ready").status == 200 }

        func ready() async throws { try await asked(for: "a server that is ready") { try await isReady() } }

        /// Wakes a phone of its own.
        func wake(_ format: TokenFormat = .pushV1) async throws {
            let apple = try MarmotSender.apple()
            let woken = stage.apns.subscribe(token: apple.token)
            stage.sandbox.nostr.inject(try sender.wake(apple.target, format))
            _ = try await woken.next("a delivery")
        }

        /// The same for a phone with Google's service.
        func wakeByGoogle() async throws {
            let google = try MarmotSender.google()
            let woken = stage.fcm.subscribe(address: google.token)
            stage.sandbox.nostr.inject(try sender.wake(google.target))
            _ = try await woken.next("a delivery")
        }
    }

    /// A server with a Marmot instance and nothing else, whose push services and Nostr relay are this
    /// process's. It is stopped in order, and must end well.
    private static func with(
        relay: String? = nil, _ body: (Running) async throws -> Void
    ) async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            let text = try configuration(stage, relay: relay)
            try await ServedProgram.with(text, in: stage) { relay in
                #expect(Set(relay.file.urls.keys) == ["admin"])
                let key = try #require(relay.file.publicKeys["marmot-main"]?.first)
                let sender = try MarmotSender(key, stage)
                try await body(
                    Running(stage: stage, program: relay.program, admin: relay.admin, sender: sender))
            }
        }
    }

    private static let isRunnable = Program.path != nil

    @Test("It serves, reads its configuration again, and stops in order", .enabled(if: isRunnable))
    func life() async throws {
        try await Self.with { running in
            try await running.ready()
            for format in TokenFormat.allCases { try await running.wake(format) }
            try await running.wakeByGoogle()
            try running.write(Self.configuration(running.stage, "formats: [seed]"))
            running.program.signal(SIGHUP)
            #expect(await running.program.says("configuration reloaded"))
            let refused = try MarmotSender.apple()
            running.stage.sandbox.nostr.inject(try running.sender.wake(refused.target))
            try await running.wake(.seed)
            try running.write("instances: {")
            running.program.signal(SIGHUP)
            #expect(await running.program.says("reload refused"))
            try await running.wake(.seed)
            #expect(!running.stage.apns.deliveries().contains { $0.token == refused.token })
        }
    }

    @Test(
        "Without a relay to be had it runs and is not ready, and listens when one comes",
        .enabled(if: isRunnable))
    func late() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        var configuration = NostrRelayConfiguration()
        configuration.port = try await Self.portOfNobody(group)
        try await Self.with(relay: "ws://127.0.0.1:\(configuration.port)") { [configuration] running in
            #expect(try await !running.isReady())
            let second = NostrRelaySimulator(configuration, authority: nil, eventLoopGroup: group)
            try await second.start()
            try await running.ready()
            let apple = try MarmotSender.apple()
            let woken = running.stage.apns.subscribe(token: apple.token)
            second.inject(try running.sender.wake(apple.target))
            _ = try await woken.next("a delivery")
            await second.stop()
        }
    }

    /// A free port below those that the system gives out by itself, so that nobody has it in the meantime: a
    /// connection that is being made may have any of the others, even to itself.
    private static func portOfNobody(_ group: MultiThreadedEventLoopGroup) async throws -> Int {
        for _ in 0..<20 {
            let configuration = changing(NostrRelayConfiguration()) { $0.port = .random(in: 20_000..<32_000) }
            let relay = NostrRelaySimulator(configuration, authority: nil, eventLoopGroup: group)
            do throws(SimulatorError) { _ = try await relay.start() } catch { continue }
            await relay.stop()
            return configuration.port
        }
        throw SimulatorError(.portNotFree)
    }

    @Test(
        "It listens for nobody but its operator, and every connection is one that it made",
        .enabled(if: isRunnable))
    func sockets() async throws {
        try await Self.with { running in
            try await running.ready()
            try await running.wake()
            try await running.wakeByGoogle()
            let sandbox = running.stage.sandbox
            let sockets = try Self.sockets(of: running.program)
            #expect(sockets.filter(\.listens).map(\.local) == [running.admin.port])
            let dialled = [
                sandbox.nostr.port, sandbox.production.port, sandbox.development.port, sandbox.fcm.port
            ]
            let ours = sockets.filter { !$0.listens && $0.local != running.admin.port }
            #expect(ours.count >= 3)
            for socket in ours { #expect(dialled.contains(socket.remote)) }
        }
    }

    private struct Socket {
        var listens: Bool
        var local: Int
        var remote: Int
    }

    /// TCP sockets that a program has opened, from the kernel's tables.
    private static func sockets(of program: Program) throws -> [Socket] {
        let pid = program.pid
        let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")
        var targets: Set<String> = []
        for file in files {
            var name = [CChar](repeating: 0, count: 64)
            // A file that was closed meanwhile has no target.
            let count = readlink("/proc/\(pid)/fd/\(file)", &name, name.count)
            guard count > 0 else { continue }
            targets.insert(String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        try #require(targets.contains { $0.hasPrefix("socket:") }, "\(files.count) files, no sockets")
        for target in try program.inherited() { targets.remove(String(target)) }
        var found: [Socket] = []
        for table in ["tcp", "tcp6"] {
            // The second is missing where there is no IPv6. Both processes see the same network.
            let text = read("/proc/self/net/\(table)")
            try #require(
                table != "tcp" || text.contains("rem_address"), "the kernel's table is not to be had")
            for line in text.split(separator: "\n").dropFirst() {
                let words = line.split(separator: " ", omittingEmptySubsequences: true)
                guard words.count > 9, targets.contains("socket:[\(words[9])]") else { continue }
                func port(_ word: Substring) -> Int { Int(word.suffix(4), radix: 16) ?? 0 }
                found.append(Socket(listens: words[3] == "0A", local: port(words[1]), remote: port(words[2])))
            }
        }
        return found
    }

    /// A file of the kernel's, which does not tell its size.
    private static func read(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
    }

    @Test(
        "Nothing of a trigger is in the memory of an idle server, and nothing of it in log or files",
        .enabled(if: geteuid() == 0 && isRunnable, "another process's memory is root's to read"))
    func memory() async throws {
        try await Self.with { running in
            try await running.ready()
            let nostr = running.stage.sandbox.nostr
            let cast = try MarmotCast(running.sender)
            for wrap in cast.wraps {
                let woken = running.stage.apns.subscribe(token: cast.apple.token)
                nostr.inject(wrap)
                _ = try await woken.next("a delivery")
            }
            for event in try cast.wrong() { nostr.inject(event) }
            let notes = nostr.notes()
            for lie in cast.lies() { nostr.say(lie) }
            // The subscription was closed with the last lie; behind its successor's first wakes all is done.
            _ = try await notes.next("a new subscription") { if case .requested = $0 { true } else { false } }
            try await running.wakeByGoogle()
            try await running.wake()
            let image = try MemoryImage(of: running.program.pid)
            #expect(image.count > 1 << 20)
            for hit in image.hits(cast.canaries) { Issue.record("\(hit)") }
            let said = files(below: running.stage.folder.path + "/own")
            cast.canaries.expectNone(in: said + [("the log", Data(running.program.text.utf8))])
        }
    }
}
#endif
