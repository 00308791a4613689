import PushModel
import PushTesting
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

/// An origin, its relay and a phone, each with real sockets between them.
@Suite("An origin server", .timeLimit(.minutes(30)))
struct OriginServerTests {
    struct Setting: Sendable, CustomTestStringConvertible {
        let profile: ZulipProfile
        let kind: TokenKind
        let isOne: Bool

        var testDescription: String { "\(profile), \(kind), \(isOne ? "one process" : "two processes")" }

        static let all = ZulipProfile.allCases.flatMap { profile in
            [
                Setting(profile: profile, kind: .apns, isOne: false),
                Setting(profile: profile, kind: .fcm, isOne: true)
            ]
        }
    }

    @Test(
        "A phone joins, is notified, dies at its push service, and comes back by itself",
        arguments: Setting.all)
    func wholeLife(_ setting: Setting) async throws {
        // Which of v12 and v11 a client uses follows from the server's level.
        let only = setting.profile == .v11 ? ", profiles: [v11]" : ""
        try await RunningOrigin.run(inOneProcess: setting.isOne, only) { running, key in
            let phone = try await OriginPhone(setting.kind, setting.profile, running, key: key)

            let first = try await running.notify("Dinner is ready")
            #expect(try await phone.opened(1).map(\.text) == ["Dinner is ready"])
            #expect(try await running.became(of: first) == ["accepted"])
            try await Self.followed(first, running, isOne: setting.isOne)

            // A test comes by the same way.
            try await phone.played.askForTest()
            #expect(try await phone.opened(2).last?.text == "test")

            // The push service says that nobody is there: the relay hears it first, and the origin at its
            // next notification at the latest.
            running.relay.stage.end(phone.token, setting.kind)
            var states: [String] = []
            while states != ["dead"] {
                let answer = try await running.desk(
                    .notify, ["user": RunningOrigin.user, "text": "Are you there?"])
                guard answer["devices"]?.int64 == 1, let id = answer["id"]?.string else { break }
                states = try await running.became(of: id)
            }
            #expect(states == ["dead"])
            // Its client hears it, and registers again by itself; the push service has it back.
            running.relay.stage.revive(phone.token, setting.kind)
            // Clients of v11 are told of no removal: they see it when they fetch the state again.
            // (Its status may be active again before anybody looks.)
            let registrations = await phone.played.registrations
            if setting.profile == .v11 { try await phone.played.start(0) }
            while await phone.played.registrations == registrations { try await phone.follow() }
            try await phone.follow(until: .active)
            _ = try await running.notify("Welcome back")
            try await asked(for: "the last text") {
                try await phone.opened(2).last?.text == "Welcome back"
            }
        }
    }
}

extension OriginServerTests {
    /// `why` follows a notification over the origin's queue and the relay's, and names nothing that is
    /// anybody's secret.
    private static func followed(_ id: String, _ running: RunningOrigin, isOne: Bool) async throws {
        let person = try Operator(running.origin)
        if !isOne { _ = try Operator(running.relay) }
        let elsewhere = isOne ? [] : ["--relay-at", running.relay.stage.state]
        let whole = await person.run(["why", id] + elsewhere)
        #expect(whole.status == .done)
        // The call to the relay, and the push to the push service.
        #expect(whole.out.filter { $0.contains("attempt 1: accepted (") }.count == 2, "\(whole.out)")
        #expect(whole.out.contains { $0.hasPrefix("device") && $0.contains("accepted at the relay") })
        #expect(!whole.out.joined().contains("Dinner"))
        let json = try JSONValue.parse(
            Array((await person.run(["why", id, "--json"] + elsewhere)).out.joined().utf8))
        #expect(json["calls"]?.array?.count == 1)
        let push = try #require(json["devices"]?[0]?["push"])
        #expect(push["answers"]?[0]?["outcome"]?.string == "accepted")
        // Without the relay's directory its half is said to be elsewhere.
        let half = await person.run("why", id)
        #expect(half.out.contains { $0.contains("--relay-at") } == !isOne, "\(half.out)")
        let unknown = await person.run("why", String(repeating: "0", count: 32))
        #expect(unknown.status == .failed)
    }
}

/// `sealbell origin --at` beside a sandbox.
@Suite("An origin beside a sandbox", .timeLimit(.minutes(30)))
struct OriginBesideTests {
    @Test("A relay that admits by invitation: it says how to invite it, and then makes itself ready")
    func invited() async throws {
        let text = RelayStage.text.replacing("sign_up: open", with: "sign_up: invite")
        try await RelayStage.running(text) { relay in
            let directory = try relay.sandboxFile()
            let beside = try OriginBeside(directory)
            try makeFolder(beside.state)
            let alone = RunningOrigin.alone(try #require(relay.urls["public"]))
            try await RelayStage.running(alone) { origin in
                let house = try RunningOrigin(relay: relay, origin: origin).house
                let said = Lines()
                let shell = Shell(
                    facts: facts(home: directory), world: .live, out: { said.add($0) },
                    err: { said.add($0) })
                let welcome = OriginWelcome(origin.relay, beside, shell)
                var lines: [String] = []
                do { try await welcome.prepare(house) } catch let failure as CommandFailure {
                    lines = failure.lines
                }
                let cure = "sealbell origins invite 127.0.0.1:8490 --at \(directory),"
                #expect(lines.count == 1 && lines[0].contains(cure), "\(lines)")
                let invited = await CommandRun.of(
                    ["origins", "invite", house.host, "--at", directory], in: directory)
                #expect(invited.status == .done, "\(invited.all)")
                try await welcome.prepare(house)
                #expect(said.all.contains { $0.contains("sealbell device zulip join") }, "\(said.all)")
            }
        }
    }
}

extension ZulipNotification {
    fileprivate var text: String {
        switch body {
        case .message(let message): message.content
        case .remove: "remove"
        case .test: "test"
        }
    }
}
