import PushModel
import PushTesting
import SQLiteStore
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("A test push, and the way of one push", .timeLimit(.minutes(30)))
struct WayOfOnePushTests {
    @Test("A test push arrives as a visible alert, its answer is printed, and why knows its reference")
    func arrives() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let token = DemoApp.token(.apns)
            let arrivals = relay.stage.apns.subscribe(token: token)
            let sent = await person.run("test-push", "--app", "acme", input: " \(token)\n")
            #expect(sent.status == .done && sent.out.count == 1)
            #expect(sent.out.first?.hasPrefix("acme/apns/production: accepted (Ok)") == true)
            let delivery = try await arrivals.next("a delivery")
            let alert = try JSONValue.parse(delivery.body)["aps"]?["alert"]
            #expect(alert?["title"]?.string == TestPush.title)
            #expect(alert?["body"]?.string == TestPush.text)
            #expect(delivery.topic == "org.acme.chat")
            #expect(try await relay.owed() == 0)
            let reference = try #require(sent.out.first?.split(separator: " ").last).description
            let why = await person.run("why", reference)
            #expect(why.status == .done)
            #expect(why.out.contains { $0.contains("attempt 1: accepted (Ok), ended") })
            // The token is in nothing that anybody can read afterwards.
            let said =
                sent.out + why.out + relay.stage.log.all
                + [String(decoding: try await relay.admin("/metrics").body, as: UTF8.self)]
            #expect(!said.joined().contains(token))
        }
    }

    @Test("A dead token, another environment, a service that is out and FCM each say their own word")
    func literal() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let dead = DemoApp.token(.apns)
            let gone = APNsDevice(topics: ["org.acme.chat"], state: .removed(since: World.live.now()))
            relay.stage.apns.register(dead, as: gone)
            let ended = await person.run("test-push", "--app", "acme", input: dead)
            #expect(ended.status == .failed)
            #expect(ended.out.first?.contains("unregistered (Unregistered)") == true)
            // A development build's token: production first, then the sandbox, as an app that learns.
            let development = DemoApp.token(.apns)
            relay.stage.apns.turn { $0.learnsDevices = false }
            relay.stage.sandboxAPNs.register(development, as: APNsDevice(topics: ["org.acme.chat"]))
            let learned = await person.run("test-push", "--app", "acme", input: development)
            #expect(learned.status == .done && learned.out.count == 2)
            #expect(learned.out.first?.contains("BadDeviceToken") == true)
            #expect(learned.out.last?.hasPrefix("acme/apns/sandbox: accepted") == true)
            let only = await person.run(
                "test-push", "--app", "acme", "--environment", "production", input: development)
            #expect(only.status == .failed && only.out.count == 2)
            #expect(only.out.last?.contains("environment: learn") == true)
            let android = DemoApp.token(.fcm)
            let google = try await person.json("test-push", "--app", "acme", input: android)
            #expect(google["answers"]?[0]?["lane"]?.string == "acme/fcm/production")
            #expect(google["answers"]?[0]?["outcome"]?.string == "accepted")
            relay.stage.fcm.turn { $0.unavailableShare = 1 }
            let out = await person.run("test-push", "--app", "acme", input: android)
            #expect(out.status == .failed && out.out.first?.contains("retry (UNAVAILABLE)") == true)
            #expect(try await relay.owed() == 0, "a test push is never owed")
        }
    }

    @Test("What cannot be sent is refused in words, and no word holds the token")
    func refusals() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let token = DemoApp.token(.apns)
            let lines: [[String]] = [
                ["--app", "nobody"], ["--app", "acme", "--service", "huawei"],
                ["--app", "acme", "--bundle", "org.other"],
                ["--app", "acme", "--environment", "staging"], ["--app", "ACME"]
            ]
            for line in lines {
                let out = Lines()
                var facts = facts()
                facts.workingDirectory = relay.stage.folder.path
                var shell = Shell(
                    facts: facts, world: .live, out: { out.add($0) }, err: { out.add($0) })
                shell.waitPatiently()
                shell.input = { _ in Secret(token.utf8) }
                let status = await Sealbell.run(["test-push"] + line + ["--at", "state"], shell)
                #expect(status == .failed && !out.all.isEmpty, "\(line)")
                #expect(!out.all.joined().contains(token))
            }
            let long = String(repeating: "a", count: 4_096)
            for input in ["", "  \n", "two words", "a\u{7}b", long + "a", "\n\n\(long)b", long + long] {
                #expect(await person.run("test-push", "--app", "acme", input: input).status == .usage)
            }
            let none = await person.run("test-push", "--app", "acme", "--device", "missing")
            #expect(none.status == .configuration)
            // Google says itself what it does not know.
            let longest = await person.run("test-push", "--app", "acme", input: " \(long)\r\n")
            #expect(longest.status == .failed && longest.out.joined().contains("unregistered"))
            let json: (name: String, value: Secret) = ("Content-Type", Secret("application/json".utf8))
            for body in [
                "", "[]", "{\"app\":\"acme\"}", "{\"app\":1,\"token\":\"a\"}", "{\"token\":\"a\"}",
                "{\"app\":\"acme\",\"token\":\"\(long)a\"}"
            ] {
                let answer = try await relay.door("admin").ask(
                    "POST", TestPushDesk.path, headers: [json], body: Secret(body.utf8))
                #expect(answer.status == 400, "\(body)")
            }
        }
    }

    @Test("An owed push shows its attempts and when the next is due; afterwards it shows how it ended")
    func owed() async throws {
        try await RelayStage.with { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let person = try Operator(relay)
                let (server, phone) = try await relay.join(.apns)
                _ = try await server.notify(DemoApp.message(1, "canary in the coal mine"), [phone], relay)
                let id = try Self.onlyPush(stage)
                let waiting = await person.run("why", id.text.uppercased())
                #expect(waiting.status == .done)
                #expect(waiting.out.contains { $0.contains("retry (Shutdown), again at") })
                #expect(waiting.out.contains { $0.hasPrefix("owed") && $0.contains("acme/apns/production") })
                let arrivals = stage.apns.subscribe(token: phone.token)
                stage.apns.turn { $0.shutdownUntil = nil }
                let delivery = try await arrivals.next("a delivery")
                // What Apple knows it by tells nothing of the row, and is as good a reference as its id.
                #expect(delivery.id != id.text)
                #expect(await person.run("why", delivery.id).status == .done)
                try await relay.drained()
                let done = try await person.json("why", delivery.id)
                #expect(done["owed"] == .null)
                let answers = try #require(done["answers"]?.array)
                #expect(answers.count >= 2 && answers.last?["outcome"]?.string == "accepted")
                #expect(answers.last?["next"]?.string == "ended")
                let numbers = answers.compactMap { $0["number"]?.int64 }
                #expect(numbers == numbers.sorted())
                let words = await person.run("why", id.text).out.joined()
                #expect(words.contains("nothing is owed any more") && !words.contains(phone.token))
                #expect(!words.contains(server.origin.id) && !words.contains(server.realm.uuid))
            }
        }
    }

    @Test("A push that nobody knows ends with 1 and says what is remembered; no reference is a wrong call")
    func unknown() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let nobody = await person.run("why", "019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f")
            #expect(nobody.status == .failed)
            #expect(nobody.out.contains { $0.hasPrefix("unknown") })
            #expect(nobody.out.contains { $0.hasPrefix("what next") && $0.contains("--token") })
            #expect(nobody.out.contains { $0.contains("since the relay's start") })
            #expect(await person.run("why", "4711").status == .usage)
            #expect(try await relay.admin("/why").status == 400)
            #expect(try await relay.admin("/why?push=x").status == 400)
        }
    }

    /// The one push that is owed, as the file says.
    private static func onlyPush(_ stage: RelayStage) throws -> PushID {
        let seen = try SQLiteInspection.look(
            at: stage.database(), within: .seconds(60), World.live.instant)
        #expect(seen.owed?.rows == 1)
        return try #require(seen.owed?.oldest)
    }
}
