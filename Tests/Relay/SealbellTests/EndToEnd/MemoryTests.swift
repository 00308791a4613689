import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

#if os(Linux)
@Suite("The memory of an idle relay", .timeLimit(.minutes(30)))
struct MemoryTests {
    /// What is still there, and why: `docs/decisions/0008`. Everything else is a fault.
    ///
    /// Identifiers as numbers: the rate limiter counts by server, the relay remembers which realm is whose,
    /// and a number that a function had in a register lies on its thread's stack until a later call comes
    /// there.
    private static let named: Set<String> = [
        "organisation as numbers", "realm as numbers", "token id as number"
    ]

    /// A relay as a process of its own, whose push services are this one's.
    private static func withRelay(_ body: (ServedProgram) async throws -> Void) async throws {
        try await RelayStage.with(CanaryTests.text, prepare: CanaryTests.prepare) { stage in
            let text = try ServedProgram.configuration(CanaryTests.text, at: stage)
            try await ServedProgram.with(text, in: stage, body)
        }
    }

    @Test(
        "Nothing of any request is in the memory, the log or the files of a relay that has done its work",
        .enabled(if: geteuid() == 0 && Program.path != nil, "another process's memory is root's to read"))
    func idle() async throws {
        try await Self.withRelay { relay in
            let key = try #require(relay.file.publicKeys["zulip-main"]?.first)
            var cast = try CanaryCast(bouncerKey: key)
            let (admin, program) = (relay.admin, relay.program)
            let door = try #require(LocalCall(patient: relay.file.urls["public"]))
            func ask(_ call: CanaryCall) async throws -> LocalCall.Answer {
                let answer = try await (call.listener == "admin" ? admin : door).ask(call)
                #expect(call.statuses.contains(answer.status), "\(call.name) \(call.path)")
                return answer
            }
            for call in cast.invitations(token: CanaryTests.token) { _ = try await ask(call) }
            for call in try cast.life() {
                let json = try JSONValue.parse(try await ask(call).body)
                if let secret = json["verification_secret"]?.string {
                    try cast.learn("verification secret", secret)
                }
                if let half = call.half { _ = try await ask(half) }
            }
            for call in cast.leftovers() + cast.wrong() + cast.operation(token: CanaryTests.token)
                + [cast.leave()]
            {
                _ = try await ask(call)
            }
            for bytes in cast.broken() { _ = try? await door.send(bytes) }
            try await asked(for: "an empty outbox") { try await relay.owed(token: CanaryTests.token) == 0 }

            // A server that keeps its connection, as real ones do.
            let kept = try Self.hold(door.port, Self.request(try #require(cast.life().first)))
            defer { close(kept) }
            try await Self.answered(kept)

            let held = Canary("held", CanaryCast.word("held"))
            let head =
                "POST /api/v1/remotes/server/register HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\na="
            let socket = try Self.hold(door.port, Array(head.utf8) + held.forms[0])
            try await asked(for: "what was said in the memory") {
                try !MemoryImage(of: program.pid).hits([held]).isEmpty
            }
            close(socket)
            try await asked(for: "a memory without it") {
                try MemoryImage(of: program.pid).hits([held]).isEmpty
            }

            let image = try MemoryImage(of: program.pid)
            // Its own private half of the key must be there, or it is no image of a relay.
            let hits = image.hits(cast.canaries)
            for hit in hits where !Self.named.contains(hit.canary) { Issue.record("\(hit)") }
            cast.canaries.expectNone(in: [("the log", Data(await relay.log().utf8))])
        }
    }

    /// A request on a connection that stays.
    private static func request(_ call: CanaryCall) -> [UInt8] {
        let body = call.body?.reveal { Array($0) } ?? []
        var head = "\(call.method) \(call.path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.count)\r\n"
        for header in call.headers {
            head += "\(header.name): \(header.value.reveal { String(decoding: $0, as: UTF8.self) })\r\n"
        }
        return Array((head + "\r\n").utf8) + body
    }

    /// Waits for the first bytes of an answer.
    private static func answered(_ file: Int32) async throws {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(file, &bytes, bytes.count, 0)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).hasPrefix("HTTP/1.1 200"))
    }

    /// Sends bytes and leaves the connection open.
    private static func hold(_ port: Int, _ bytes: [UInt8]) throws -> Int32 {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        try #require(send(file, bytes, bytes.count, 0) == bytes.count)
        return file
    }
}
#endif
