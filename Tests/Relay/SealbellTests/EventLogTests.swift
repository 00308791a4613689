import Delivery
import PushModel
import PushTesting
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("What the log says of single events", .timeLimit(.minutes(30)))
struct EventLogTests {
    @Test("So many lines a minute, and how many there were beyond")
    func bounded() {
        let (clock, spy) = (ManualClock(), LogSpy())
        let events = EventLog(spy.journal, clock.world(seed: 1))
        for _ in 0..<100 { events.note("origin signed up", [(.count, 1)]) }
        #expect(spy.text.count == EventLog.linesPerMinute)
        clock.advance(by: .seconds(60))
        events.note("origin signed up", [(.count, 1)])
        #expect(
            spy.text.suffix(2) == ["info events not logged count=40", "info origin signed up count=1"])
    }

    @Test("Refusals are told once a minute, by lane and word, and no more words than fit")
    func refusals() throws {
        let (clock, spy) = (ManualClock(), LogSpy())
        let world = clock.world(seed: 1)
        let rates = RefusalRates(world)
        func note(_ lane: String, _ outcome: OutcomeKind, _ reason: Reason, _ count: Int) throws {
            let attempt = Attempt(
                id: PushID(at: clock.now, random: 1, 2), lane: try #require(LaneName(lane)), number: 1,
                sentAt: clock.now, answeredAt: clock.now, outcome: outcome, reason: reason, next: .ended)
            for _ in 0..<count { rates.note(attempt) }
        }
        try note("acme/apns/production", .accepted, .ok, 5)
        try note("acme/apns/production", .unregistered, .unregisteredAPNs, 3)
        try note("acme/apns/sandbox", .rejected, .badDeviceToken, 2)
        rates.tell(spy.journal)
        #expect(spy.text.isEmpty)
        clock.advance(by: .seconds(60))
        rates.tell(spy.journal)
        #expect(
            spy.text == [
                "info push service refused lane=acme/apns/production outcome=unregistered "
                    + "reason=Unregistered count=3 seconds=60",
                "info push service refused lane=acme/apns/sandbox outcome=rejected "
                    + "reason=BadDeviceToken count=2 seconds=60"
            ])
        for number in 0..<40 { try note("app\(number)/apns/production", .rejected, .badDeviceToken, 1) }
        clock.advance(by: .seconds(60))
        rates.tell(spy.journal)
        #expect(spy.text.count == 2 + RefusalRates.kinds + 1)
        #expect(spy.text.last == "info push service refused count=8 seconds=60")
    }

    @Test("Sign-ups, refused ones, ended registrations and reloaded credentials have a line without a name")
    func lines() async throws {
        try await RelayStage.running { relay in
            func line(_ event: String, _ more: String...) async throws -> String {
                var found = ""
                try await asked(for: event) {
                    found =
                        relay.stage.log.all.first { line in
                            line.contains("\"event\":\"\(event)\"") && more.allSatisfy(line.contains)
                        } ?? ""
                    return !found.isEmpty
                }
                return found
            }
            let server = try await relay.server()
            _ = try await line("origin signed up", "\"instance\":\"zulip-main\"")
            // Another server of the same host name.
            let other = DemoServer(server.host)
            _ = try await relay.ask(other.origin.signUp(hostname: other.host, mail: other.mail))
            let refused = try await line("sign-up refused", "\"code\":\"")
            #expect(!refused.contains(other.host) && !refused.contains("example"))
            let phone = try await relay.phone(.apns, of: server)
            let made = try await line("device registered", "\"instance\":\"zulip-main\"")
            // Apple knows the phone from here on.
            #expect(try await server.notify(DemoApp.message(1, "m"), [phone], relay).apple == 1)
            relay.stage.apns.unregister(phone.token, since: World.live.now())
            _ = try await server.notify(DemoApp.message(2, "m"), [phone], relay)
            let ended = try await line("registration ended", "\"reason\":\"Unregistered\"")
            let id = try #require(ended.firstMatch(of: #/"registration":"[0-9a-f]{8}"/#)).0
            #expect(made.contains(id), "one registration, one short id")
            #expect(!made.contains(phone.token) && !ended.contains(phone.token))
            let android = try await relay.phone(.fcm, of: server)
            let gone = await (try Operator(relay)).run(
                "forget", "device", "--realm", server.realm.uuid, "--token-id",
                android.tokenID.text)
            #expect(gone.status == .done)
            _ = try await line("registration removed", "\"registration\":\"")
            try relay.stage.replaceAPNsKey()
            try relay.relay.reload(relay.stage.configuration())
            _ = try await line("credential reloaded", "\"credential\":\"A1B2C3D4E5/F6G7H8I9J0\"")
            #expect(
                relay.stage.log.all.filter { $0.contains("credential reloaded") }.count == 1,
                "Google's is as it was")
        }
    }
}
