@testable import AdminIngress
import Crypto
import PushModel
import PushTesting
import Testing
import WireFormats

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A sink that remembers, and fails as often as a test says.
private final class NotedSink: AlertSink {
    let told = Noted<[AlertNotice]>([])
    private let failures: Noted<Int>

    init(failures: Int = 0) { self.failures = Noted(failures) }

    let way = NoteCode("test")

    func tell(_ notice: AlertNotice) async -> AlertDelivery {
        told.change { $0.append(notice) }
        return failures.change { left in
            left -= 1
            return left < 0 ? .told : .refused(status: 410)
        }
    }
}

@Suite("What an operator is told", .timeLimit(.minutes(30)))
struct AlertTests {
    private let halted = Alert.laneHalted(probeLane, .invalidProviderToken)

    /// A line of the log: what has happened, to whom, why, and what to do.
    private func line(_ event: String, _ alert: Alert, cause: String, sentence prefix: String = "") -> String
    {
        "\(event) alert=\(alert.subject.kind.rawValue) note=\(alert.subject.name) cause=\(cause) "
            + "sentence=\(prefix)\(alert.sentence)"
    }

    @Test("The book as a table: a lasting trouble is told once, reminded each hour, and its end is told")
    func lasting() {
        var book = AlertState()
        func at(_ seconds: Int64) -> UnixTime { UnixTime(seconds: 1_000_000 + seconds) }
        #expect(book.raise(halted, at: at(0))?.phase == .raised)
        #expect(book.raise(halted, at: at(1)) == nil)
        #expect(book.raise(halted, at: at(3599)) == nil)
        #expect(book.due(at: at(3600)).map(\.phase) == [.reminded])
        #expect(book.due(at: at(3601)) == [])
        #expect(book.clear(halted.subject, at: at(4000))?.phase == .cleared)
        #expect(book.clear(halted.subject, at: at(4001)) == nil)
        #expect(book.due(at: at(9000)) == [])
        #expect(book.raised == [])
    }

    @Test("A trouble that comes and goes is told once in ten minutes, and its end only if its beginning was")
    func flapping() {
        var book = AlertState()
        var told: [AlertNotice.Phase] = []
        for second in 0..<600 {
            let now = UnixTime(seconds: Int64(1_000_000 + second))
            let notice = second % 2 == 0 ? book.raise(halted, at: now) : book.clear(halted.subject, at: now)
            if let notice { told.append(notice.phase) }
        }
        #expect(told == [.raised, .cleared])
        #expect(book.raise(halted, at: UnixTime(seconds: 1_000_601))?.phase == .raised)
    }

    @Test("A trouble held back because it flapped is told later if it lasts")
    func heldBack() {
        var book = AlertState()
        func at(_ seconds: Int64) -> UnixTime { UnixTime(seconds: 1_000_000 + seconds) }
        _ = book.raise(halted, at: at(0))
        _ = book.clear(halted.subject, at: at(1))
        #expect(book.raise(halted, at: at(2)) == nil)
        #expect(book.due(at: at(599)) == [])
        #expect(book.due(at: at(600)).map(\.phase) == [.raised])
    }

    @Test("Subjects are apart, and figures do not make a new one")
    func subjects() {
        var book = AlertState()
        let now = UnixTime(seconds: 1)
        #expect(book.raise(.outboxFilling(percent: 80), at: now) != nil)
        #expect(book.raise(.outboxFilling(percent: 90), at: now) == nil)
        #expect(book.raise(.certificateExpiring(configured("one"), days: 3), at: now) != nil)
        #expect(book.raise(.certificateExpiring(configured("two"), days: 3), at: now) != nil)
        #expect(book.raised.count == 3)
    }

    @Test("The port writes log and gauge at once, and tells its sinks again when one fails")
    func port() async throws {
        let clock = ManualClock()
        let spy = LogSpy()
        let metrics = PrometheusMetrics()
        let sink = NotedSink(failures: 1)
        let port = AlertPort(
            ways: AlertWays(sinks: [sink]), journal: spy.journal, metrics: metrics,
            world: clock.world(seed: 1))
        port.raise(halted)
        port.raise(halted)
        #expect(spy.text == ["error " + line("alert raised", halted, cause: "InvalidProviderToken")])
        let series = Series(
            name: "sealbell_alert", labels: ["alert": "lane_halted", "subject": "acme/apns/production"])
        #expect(try readMetrics(metrics.text()).values[series] == 1)
        try await beside(port.run) {
            // The reminder's timer, and the pause behind the failed attempt.
            await clock.sleepers(atLeast: 2)
            #expect(sink.told.value.count == 1)
            clock.advance(by: .seconds(5))
            await sink.told.until { $0.count == 2 }
            port.clear(halted.subject)
            await sink.told.until { $0.count == 3 }
        }
        #expect(sink.told.value.map(\.phase) == [.raised, .raised, .cleared])
        #expect(try readMetrics(metrics.text()).values[series] == 0)
    }

    @Test("A certificate is told when it nears its end, daily, and at once when it has ended")
    func certificate() {
        var book = AlertState()
        let name = configured("public")
        let start = UnixTime(seconds: 1_000_000)
        #expect(book.raise(.certificateExpiring(name, days: 13), at: start)?.phase == .raised)
        #expect(book.raise(.certificateExpiring(name, days: 13), at: start + .seconds(3600)) == nil)
        #expect(book.due(at: start + .seconds(86_399)) == [])
        #expect(book.due(at: start + .seconds(86_400)).map(\.phase) == [.reminded])
        let ended = book.raise(.certificateExpiring(name, days: 0), at: start + .seconds(86_500))
        #expect(ended?.phase == .raised && ended?.sentence.contains("has expired") == true)
        #expect(book.raise(.certificateExpiring(name, days: 0), at: start + .seconds(90_000)) == nil)
        let subject = Alert.certificateExpiring(name, days: 0).subject
        #expect(book.clear(subject, at: start + .seconds(90_001))?.phase == .cleared)
    }

    @Test("Sinks hear thirty notices an hour; the last says that there is more, and the rest is counted")
    func budget() async throws {
        let clock = ManualClock()
        let metrics = PrometheusMetrics()
        let spy = LogSpy()
        let sink = NotedSink()
        let port = AlertPort(
            ways: AlertWays(sinks: [sink]), journal: spy.journal, metrics: metrics,
            world: clock.world(seed: 1))
        let untold = Series(name: "sealbell_alerts_untold_total", labels: [:])
        #expect(try readMetrics(metrics.text()).values[untold] == 0, "it counts from zero")
        for number in 0..<50 { port.raise(.certificateExpiring(configured("l\(number)"), days: 3)) }
        #expect(spy.text.count == 50)
        try await beside(port.run) {
            await sink.told.until { $0.count >= 30 }
            #expect(sink.told.value[..<29].allSatisfy { $0.subject.kind == .certificateExpiring })
            #expect(sink.told.value[29].subject.kind == .muted)
            // The next hour has its own thirty.
            await clock.sleepers(atLeast: 1)
            clock.advance(by: .seconds(3600))
            port.raise(halted)
            await sink.told.until { $0.count >= 31 }
            #expect(sink.told.value[30].subject == halted.subject)
        }
        #expect(try readMetrics(metrics.text()).values[untold] == 20)
    }

    @Test("A way that is switched off is not gone, and an exchange of ways is in force for the next notice")
    func ways() async throws {
        let metrics = PrometheusMetrics()
        let spy = LogSpy()
        let (old, new) = (NotedSink(), NotedSink())
        let port = AlertPort(
            ways: AlertWays(log: false, gauge: false, sinks: [old]), journal: spy.journal, metrics: metrics,
            world: ManualClock().world(seed: 1))
        try await beside(port.run) {
            port.raise(halted)
            await old.told.until { !$0.isEmpty }
            #expect(spy.text.isEmpty && !metrics.text().contains("sealbell_alert{"))
            port.adopt(AlertWays(sinks: [new]))
            port.clear(halted.subject)
            await new.told.until { !$0.isEmpty }
            #expect(
                spy.text == [
                    "info "
                        + line(
                            "alert cleared", halted, cause: "InvalidProviderToken", sentence: "This is over: "
                        )
                ])
            #expect(old.told.value.count == 1 && new.told.value.map(\.phase) == [.cleared])
        }
    }

    @Test("A sink that never gets through is given up after three attempts, in the log")
    func givesUp() async throws {
        let clock = ManualClock()
        let spy = LogSpy()
        let sink = NotedSink(failures: 100)
        let port = AlertPort(
            ways: AlertWays(sinks: [sink]), journal: spy.journal, metrics: PrometheusMetrics(),
            world: clock.world(seed: 1))
        port.raise(.keyBesideDatabase)
        try await beside(port.run) {
            for _ in 0..<2 {
                await clock.sleepers(atLeast: 2)
                clock.advance(by: .seconds(5))
            }
            await spy.until(contain: "alert not delivered")
            #expect(
                spy.text.last
                    == "warning alert not delivered alert=key_beside_database note= way=test code=refused "
                    + "status=410"
            )
        }
        #expect(sink.told.value.count == 3)
    }

    @Test(
        "A webhook's signature is the HMAC of timestamp, full stop and body, which says what the notice says")
    func webhook() async throws {
        let key = Array("key of the operator".utf8)
        let notice = AlertNotice(
            .raised, halted.subject, halted.sentence, at: UnixTime(seconds: 1_700_000_000))
        let web = ScriptedWeb { _ in WebAnswer(204) }
        let sink = WebhookSink(url: "https://ops.example/hook", key: Secret(key), web: web)
        #expect(await sink.tell(notice) == .told)
        let request = try #require(web.requests.value.first)
        let body = try #require(request.body).reveal { Array($0) }
        let fields = Dictionary(uniqueKeysWithValues: request.headers.map { ($0.name, $0.value) })
        #expect(fields["x-sealbell-timestamp"] == "1700000000")
        let mac = HMAC<SHA256>.authenticationCode(
            for: Array("1700000000.".utf8) + body, using: SymmetricKey(data: key))
        #expect(
            fields["x-sealbell-signature"] == "v1="
                + mac.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
        let text = String(decoding: body, as: UTF8.self)
        #expect(text.contains(#""alert":"lane_halted""#) && text.contains(#""phase":"raised""#))
        func outcome(_ web: ScriptedWeb) async -> AlertDelivery {
            await WebhookSink(url: "https://ops.example/hook", key: Secret(key), web: web).tell(notice)
        }
        #expect(await outcome(ScriptedWeb { _ in WebAnswer(500) }) == .refused(status: 500))
        for code in WebErrorCode.allCases {
            let web = ScriptedWeb { (_) async throws(WebError) -> WebAnswer in throw WebError(code) }
            #expect(await outcome(web) == .failed(ErrorCode(WebError(code))))
        }
    }

    @Test("A mail command gets the message; one that fails, is missing or never ends is a failure")
    func mailCommand() async throws {
        let folder = try TemporaryFolder()
        let notice = AlertNotice(.raised, halted.subject, halted.sentence, at: UnixTime(seconds: 1))
        let file = folder.file("mail")
        let tee = MailCommandSink(
            path: "/usr/bin/tee", arguments: [file], recipient: "ops@example.org", world: .live)
        #expect(await tee.tell(notice) == .told)
        let mail = try String(decoding: Data(contentsOf: URL(fileURLWithPath: file)), as: UTF8.self)
        #expect(mail.hasPrefix("To: ops@example.org\nSubject: [sealbell] lane_halted raised\n"))
        #expect(mail.contains("is halted (InvalidProviderToken)"))
        let fails = MailCommandSink(path: "/bin/false", arguments: [], recipient: "x", world: .live)
        #expect(await fails.tell(notice) == .refused(status: 1))
        let missing = MailCommandSink(path: folder.file("none"), arguments: [], recipient: "x", world: .live)
        #expect(await missing.tell(notice) == .failed(ErrorCode("command-not-started")))
        let clock = ManualClock()
        let endless = MailCommandSink(
            path: "/bin/sleep", arguments: ["100"], recipient: "x", world: clock.world(seed: 1))
        async let outcome = endless.tell(notice)
        await clock.sleepers(atLeast: 1)
        clock.advance(by: .seconds(31))
        #expect(await outcome == .failed(ErrorCode("command-killed")))
        folder.remove()
    }
}
