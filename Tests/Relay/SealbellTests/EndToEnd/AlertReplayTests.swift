import AdminIngress
import Delivery
import HTTPIngress
import MarmotPush
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What an operator's receiver is told when alerts meet reloads and restarts: the end of what is over, once;
/// that it still holds of what is not, once; and nothing of what nobody knows.
@Suite("Alerts replayed over reload and restart", .timeLimit(.minutes(30)))
struct AlertReplayTests {
    private static let lane = "acme/apns/production"

    private func text(_ hook: String, _ base: String = RelayStage.text, alerts more: String = "") -> String {
        base + "alerts:\n" + hook + more
    }

    /// Sends until the lane halts: several refusals in a row may be needed.
    private func halt(
        _ server: DemoServer, _ phone: DemoApp, _ relay: RunningRelay, from first: Int64 = 1
    ) async throws {
        var id = first
        try await asked(for: "a halted lane") {
            _ = try await server.notify(DemoApp.message(id, "m"), [phone], relay)
            id += 1
            return relay.relay.lanes().contains { $0.lane.description == Self.lane && $0.isHalted }
        }
    }

    /// A key that Apple knows takes the place of the one that it does not.
    private func mend(_ stage: RelayStage) throws {
        let fresh = APNsKey()
        try stage.apns.register(fresh.registration())
        try stage.sandboxAPNs.register(fresh.registration())
        try put(fresh, stage)
    }

    private func put(_ key: APNsKey, _ stage: RelayStage) throws {
        try writeFile(
            stage.state + "/sandbox/A1B2C3D4E5-F6G7H8I9J0.p8", Array(key.privateKeyPEM.utf8), replacing: true)
    }

    @Test("A reload ends no halt: a new one is told at once, and the end with the first acceptance")
    func reload() async throws {
        try await RelayStage.with { stage in
            try await AlertReceiver.with(stage) { receiver, hook in
                let text = text(hook)
                try await stage.run(text, spans: { $0.spans.zulipReply = .milliseconds(50) }) { relay in
                    let (server, phone) = try await relay.join(.apns)
                    stage.apns.revoke(keyID: "F6G7H8I9J0")
                    stage.sandboxAPNs.revoke(keyID: "F6G7H8I9J0")
                    try await halt(server, phone, relay)
                    try await receiver.hears("raised", of: "lane_halted", Self.lane)
                    // Another key that is unknown too.
                    try put(APNsKey(), stage)
                    try relay.relay.reload(stage.configuration(text))
                    try await halt(server, phone, relay, from: 1_000)
                    try await receiver.hears("raised", "raised", of: "lane_halted", Self.lane)
                    try mend(stage)
                    try relay.relay.reload(stage.configuration(text))
                    _ = try await server.notify(DemoApp.message(2_000, "m"), [phone], relay)
                    try await receiver.hears("raised", "raised", "cleared", of: "lane_halted", Self.lane)
                }
            }
        }
    }

    @Test("What a restart cures is called over once, and what it does not is told once more")
    func restart() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            try await AlertReceiver.with(stage) { receiver, hook in
                let text = text(hook, MarmotTests.text())
                let quick: (inout Surroundings) -> Void = { around in
                    around.spans.zulipReply = .milliseconds(50)
                    around.spans.watch.unheardAfter = .milliseconds(200)
                }
                let refused = "marmot-main/127.0.0.1"
                stage.sandbox.nostr.turn { $0.refusesEvents = .blocked }
                var cast: (server: DemoServer, phone: DemoApp)?
                try await stage.run(text, spans: quick) { relay in
                    let (server, phone) = try await relay.join(.apns)
                    cast = (server, phone)
                    stage.apns.revoke(keyID: "F6G7H8I9J0")
                    stage.sandboxAPNs.revoke(keyID: "F6G7H8I9J0")
                    try await halt(server, phone, relay)
                    try await receiver.hears("raised", of: "lane_halted", Self.lane)
                    try await receiver.hears("raised", of: "instance_refused", refused)
                }
                let (server, phone) = try #require(cast)
                // Neither is mended.
                try await stage.run(text, spans: quick) { relay in
                    try await halt(server, phone, relay, from: 1_000)
                    try await receiver.hears("raised", "reminded", of: "lane_halted", Self.lane)
                    try await receiver.hears("raised", "reminded", of: "instance_refused", refused)
                }
                try mend(stage)
                stage.sandbox.nostr.turn { $0.refusesEvents = nil }
                try await stage.run(text, spans: quick) { relay in
                    _ = try await server.notify(DemoApp.message(2_000, "m"), [phone], relay)
                    try await receiver.hears("raised", "reminded", "cleared", of: "lane_halted", Self.lane)
                    try await receiver.hears(
                        "raised", "reminded", "cleared", of: "instance_refused", refused)
                }
            }
        }
    }

    /// One of each kind, of what the stage's configuration has, and of what it has no more.
    private func oneOfEach() throws -> [Alert] {
        let lane = try #require(LaneName(Self.lane))
        let gone = try #require(LaneName("gone/apns/production"))
        return [
            .laneHalted(lane, .invalidProviderToken), .laneHalted(gone, .invalidProviderToken),
            .laneUnanswered(lane, .notReached), .laneUnreachable(lane), .custodyEnded(lane, 3),
            .pushOverdue(minutes: 40), .instanceUnheard(configured("marmot-main")),
            .instanceRefused(configured("marmot-main"), by: configured("127.0.0.1")),
            .instanceRefused(configured("marmot-main"), by: configured("gone.example")),
            .watchesRefused(configured("session-gone"), 5), .messagesMissed(configured("status-gone"), 5),
            .answersRefused(configured("status-gone"), 5), .gatewayFailing(configured("status-gone"), 5),
            .outboxFilling(percent: 85), .diskLow(mebibytes: 100), .storeFailing(.noSpace),
            .certificateExpiring(configured("gone"), days: 3), .keyBesideDatabase, .pushesSetAside(2),
            .recordsSetAside(2), .clockDoubted(hours: 7), .doorStrained(configured("public"), [.bodies]),
            .registrationExpired(
                configured("origin-gone"), realm: "acme", 3, since: "2026-11-27T10:00:00.000Z"),
            .registrationRefused(
                configured("origin-gone"), realm: "acme", RelayWord(word: "unknownRealm", cure: "Ask.")),
            .originStaleList(
                configured("origin-gone"), realm: "acme", RelayWord(word: "notAllowed", cure: "Ask.")),
            .reloadRefused(ErrorCode("file"))
        ]
    }

    /// A process of which nobody has looked at alerts when it ends.
    private static func blind(_ around: inout Surroundings) { around.spans.watch.every = .seconds(600) }

    @Test("Every kind of alert that the process before has told is called over exactly once when it is")
    func everyKind() async throws {
        let all = try oneOfEach()
        #expect(Set(all.map(\.subject.kind)) == Set(Alert.Kind.allCases).subtracting([.muted]))
        let base = MarmotTests.text()
        try await RelayStage.with(base) { stage in
            try await AlertReceiver.with(stage) { receiver, hook in
                let text = text(hook, base)
                var cast: (server: DemoServer, phone: DemoApp)?
                try await stage.run(text, spans: Self.blind) { relay in
                    let server = try await relay.server()
                    cast = (server, try await relay.phone(.apns, of: server))
                    // As if this process had met them, in the moment before it ends.
                    for alert in all { relay.relay.alerts.raise(alert) }
                    for alert in all {
                        let subject = alert.subject
                        try await asked(for: "\(subject)") {
                            receiver.phases(subject.kind.rawValue, subject.name).first == "raised"
                        }
                    }
                }
                let (server, phone) = try #require(cast)
                try await stage.run(
                    text,
                    spans: { around in
                        // The hour for which ended custody is told of.
                        around.spans.watch.endedFor = .milliseconds(200)
                        around.spans.ingress.strainLasts = .milliseconds(200)
                    }
                ) { relay in
                    _ = try await server.notify(DemoApp.message(1, "m"), [phone], relay)
                    for alert in all {
                        let subject = alert.subject
                        try await asked(for: "the end of \(subject)") {
                            receiver.phases(subject.kind.rawValue, subject.name).last == "cleared"
                        }
                    }
                    #expect(relay.relay.alerts.raised.isEmpty)
                }
                for alert in all {
                    let subject = alert.subject
                    let phases = receiver.phases(subject.kind.rawValue, subject.name)
                    #expect(phases == ["raised", "cleared"], "\(subject)")
                }
            }
        }
    }

    @Test("What is not known to be over stands, and nothing is told of it")
    func unknown() async throws {
        try await RelayStage.with { stage in
            try await AlertReceiver.with(stage) { receiver, hook in
                let lane = try #require(LaneName(Self.lane))
                let unknown: [Alert] = [.laneHalted(lane, .invalidProviderToken), .custodyEnded(lane, 3)]
                try await stage.run(text(hook), spans: Self.blind) { relay in
                    // By then the watch has looked once.
                    _ = try await relay.server()
                    for alert in unknown { relay.relay.alerts.raise(alert) }
                    relay.relay.alerts.raise(.pushOverdue(minutes: 40))
                    try await asked(for: "three notices") { receiver.told.value.count == 3 }
                }
                try await stage.run(text(hook)) { relay in
                    // By then the watch has judged all of them.
                    try await receiver.hears("raised", "cleared", of: "push_overdue")
                    #expect(Set(relay.relay.alerts.raised.map(\.subject)) == Set(unknown.map(\.subject)))
                }
                #expect(receiver.told.value.count == 4)
            }
        }
    }

    @Test("A receiver that is away, refuses or is not to be trusted is named, and its alert, in the log")
    func undelivered() async throws {
        try await RelayStage.with { stage in
            try await AlertReceiver.with(stage) { receiver, hook in
                receiver.status.set(403)
                func told(_ code: String) async throws {
                    try await asked(for: "an alert that is not delivered: \(code)") {
                        stage.log.all.contains {
                            $0.contains(#""event":"alert not delivered""#) && $0.contains(code)
                                && $0.contains(#""alert":"outbox_filling""#)
                                && $0.contains(#""way":"webhook""#)
                        }
                    }
                }
                // Its pauses of five seconds pass at once.
                let hurry: (inout Surroundings) -> Void = { around in
                    let sleep = around.world.sleep
                    around.world.sleep = { until in
                        let now = ContinuousClock.now
                        let isPause = until - now > .seconds(4) && until - now < .seconds(6)
                        try await sleep(isPause ? now + .milliseconds(20) : until)
                    }
                }
                try await stage.run(text(hook), spans: hurry) { relay in
                    relay.relay.alerts.raise(.outboxFilling(percent: 85))
                    try await told(#""code":"refused","status":403"#)
                }
                let untrusted = hook.replacing(#/,\s+ca: "[^"]*"/#, with: "")
                try await stage.run(text(untrusted), spans: hurry) { relay in
                    relay.relay.alerts.raise(.outboxFilling(percent: 86))
                    try await told(#""code":"tlsFailed""#)
                }
            }
        }
    }
}
