import Foundation
import HTTPIngress
import NextcloudPush
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A Nextcloud server that a command line can speak to over HTTP.
private final class PlayedServer: HTTPFace {
    let name = configured("server")
    let routes = [HTTPRoute(.prefix("/nextcloud/ocs/"), bodyLimitBytes: 1 << 16)]
    private let cloud: Mutex<DemoCloud>
    /// `Authorization` fields that came.
    let shown = Mutex<[String]>([])
    let isOut = Mutex(false)

    init() throws { cloud = Mutex(try DemoCloud("http://localhost/nextcloud")) }

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        if let field = inbound.header("authorization") { shown.withLock { $0.append(field) } }
        if isOut.withLock(\.self) { return .text(503, "maintenance") }
        if inbound.path.hasSuffix("/cloud/capabilities") {
            return HTTPOutbound(200, .json, Array(DemoCloud.capabilitiesText.utf8))
        }
        let body = inbound.withBody { Secret(copying: $0) }
        let answer = cloud.withLock { cloud in
            try? cloud.answer(
                inbound.method.rawValue, userAgent: inbound.header("user-agent") ?? "", body, tokenID: 41,
                now: World.live.now())
        }
        return HTTPOutbound(answer?.status ?? 500, .json, answer?.body.reveal { Array($0) } ?? [])
    }

    func notify(_ notification: NextcloudNotification, _ relay: RunningRelay) async throws -> ProxyVerdict {
        let entries = try cloud.withLock { try $0.notify(notification, now: World.live.now()) }
        let call = cloud.withLock { $0.call(entries) }
        let answer = await KitWire(DirectWeb(), patience: .seconds(600)).answer(call)
        return cloud.withLock { $0.read(answer, to: entries) }
    }

    /// Serves on a free port, and gives `body` its address.
    static func serving(_ body: (PlayedServer, String) async throws -> Void) async throws {
        let server = try PlayedServer()
        try await server.serving { port in try await body(server, "http://localhost:\(port)/nextcloud") }
    }
}

@Suite("A Nextcloud device on the command line", .timeLimit(.minutes(30)))
struct NextcloudCommandTests {
    private static let password = "aBcDe-FgHiJ-kLmNo-PqRsT-uVwXy"

    private static func person() throws -> CommandPerson { try CommandPerson("nextcloud", "device.json") }

    @Test("It registers at a server and a relay, opens what arrives, and takes itself back")
    func life() async throws {
        try await RelayStage.running(RelayStage.nextcloud()) { relay in
            try await PlayedServer.serving { server, url in
                let person = try Self.person()
                try person.put("\(Self.password)\n", at: "password")
                let address = "played-0123456789abcdef:APA91b\(HandmadeDevice.token())"
                try person.put(address, at: "token")
                let proxy = (relay.urls["public"] ?? "").replacing("127.0.0.1", with: "localhost")
                let registered = await person.run(
                    "register", "--server", url, "--user", "ada", "--password-file", "password",
                    "--relay", "\(proxy)/cloud/talk", "--token-file", "token")
                #expect(registered.err == [])
                #expect(registered.out == ["server: HTTP 201", "relay: HTTP 200", "registered"])
                #expect(server.shown.withLock { $0.allSatisfy { $0.hasPrefix("Basic ") } })
                let arrivals = relay.stage.fcm.subscribe(address: address)
                let sent = try await server.notify(TestCloud.message(7, "see you"), relay)
                #expect(sent.outcome == .sent)
                let delivery = try await arrivals.next("a delivery")
                let push = String(decoding: delivery.body, as: UTF8.self)
                let opened = await person.run("open", input: push)
                #expect(opened.out == ["alert: nid 7, app spreed, type chat, id t0k3n, “see you”"])
                let directory = try relay.sandboxFile()
                #expect(await person.run("open", "--sandbox", directory).out == opened.out)
                try writeFile(person.folder.path + "/push", delivery.body, replacing: true)
                #expect(await person.run("open", "--file", "push").out == opened.out)
                let both = await person.run("open", "--file", "push", "--sandbox", directory)
                #expect(both.status == .usage && both.out.isEmpty)
                #expect(await person.run("open", "--sandbox", ".").status == .unavailable)
                let foreign = await person.run(
                    "open", input: #"{"subject":"AAAA","signature":"AAAA"}"#)
                #expect(foreign.status == .failed && foreign.out.isEmpty)
                #expect(await person.run("open", input: "no push").status == .failed)
                // Again, with what the state file holds.
                let again = await person.run("register")
                #expect(again.status == .done && again.out.last == "registered")
                let gone = await person.run("unregister")
                #expect(gone.out == ["server: HTTP 202", "relay: HTTP 200", "unregistered"])
                #expect(await person.run("unregister").status == .failed)
                for run in [registered, opened, again, gone] {
                    let text = (run.out + run.err).joined()
                    #expect(!text.contains(Self.password) && !text.contains(address))
                }
            }
        }
    }

    /// Lets the phone of the state file leave, and keeps what `answer` to its one call makes of it.
    private func leave(_ path: String, at now: UnixTime, _ answer: CallAnswer) throws {
        let played = try PlayedDevice(file: path)
        var device = try played.device()
        try device.use(token: nil)
        let call = try #require(device.due(at: now).first)
        device.answered(answer, to: call, at: now)
        try played.keep(device.kept)
    }

    @Test("An end in several runs says whom it asks, when to come again, and when it was given up")
    func leavingLater() async throws {
        try await PlayedServer.serving { _, url in
            let person = try Self.person()
            let path = person.state
            try writeFile(person.folder.path + "/password", Array(Self.password.utf8), replacing: true)
            let begun = await person.run(
                "register", "--server", url, "--user", "ada", "--password-file", "password", "--relay",
                "http://localhost:1/cloud", "--app", "talk-ios")
            #expect(begun.status == .unavailable && begun.out.first == "server: HTTP 201")
            let now = World.live.now()
            // The server has heard of it in a run before.
            try leave(path, at: now, .http(status: 202, body: Secret([])))
            let second = await person.run("unregister")
            #expect(second.status == .unavailable && !second.out.isEmpty)
            #expect(second.out.allSatisfy { $0 == "relay: no answer" })
            // The relay has asked for patience: no call is made.
            try leave(
                path, at: World.live.now() + .seconds(600),
                .http(status: 503, retryAfter: "36000", body: Secret([])))
            let early = await person.run("unregister")
            #expect(early.status == .unavailable && early.out.isEmpty)
            #expect(early.err.joined().contains("run it again in "))
            // Logged in again, and then nobody could be told for a month.
            _ = await person.run("register")
            try leave(path, at: now - .seconds(31 * 86_400), .none)
            let given = await person.run("unregister")
            #expect(given.status == .failed && given.out.isEmpty)
            #expect(given.err.joined().contains("within 30 days"))
        }
    }

    @Test("What it keeps is for its owner alone, and what it cannot do it says without a secret")
    func faults() async throws {
        try await PlayedServer.serving { server, url in
            let person = try Self.person()
            let path = person.state
            let without = await person.run("register")
            #expect(without.status == .usage && without.err.joined().contains("--server"))
            #expect(await person.run("open").status == .failed)
            try writeFile(person.folder.path + "/password", Array(Self.password.utf8), replacing: true)
            server.isOut.withLock { $0 = true }
            let out = await person.run(
                "register", "--server", url, "--user", "ada", "--password-file", "password", "--relay",
                "http://localhost:1/cloud", "--app", "talk-ios")
            #expect(out.status == .unavailable && out.err == ["server: HTTP 503 when asked what it can do."])
            server.isOut.withLock { $0 = false }
            let unreached = await person.run("register")
            #expect(unreached.status == .unavailable)
            #expect(unreached.out == ["server: HTTP 201", "relay: no answer"])
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let kept = try String(contentsOfFile: path, encoding: .utf8)
            #expect(kept.contains(Self.password), "the search can find")
            for run in [without, out, unreached] {
                #expect(!(run.out + run.err).joined().contains(Self.password))
            }
            try writeFile(path, Array("{\"kind\":\"\(Self.password)\"}".utf8), replacing: true)
            let broken = await person.run("register")
            #expect(broken.status == .failed && !broken.err.joined().contains(Self.password))
        }
    }
}
