import CoreMetrics
import Crypto
import Delivery
import HTTPIngress
import PushModel
import PushTesting
import Testing
import WireFormats

@testable import AdminIngress

@Suite("The dashboard", .timeLimit(.minutes(30)))
struct DashboardTests {
    /// A report in which everything has something to show.
    private static var busy: StatusReport {
        var report = StatusReport(
            version: NoteCode("1"), startedAt: UnixTime(seconds: 1_000),
            lanes: [LaneReport(probeLane, .halted, inMemory: 3, parked: 4, reason: .badDeviceToken)],
            outboxRows: 7, outboxBytes: 900)
        report.oldestAt = UnixTime(seconds: 2_000)
        report.origins = 12
        report.lanes[0].inFlight = 5
        report.lanes[0].connections = 2
        report.lanes[0].reasonAt = UnixTime(seconds: 9_000)
        report.refusals = [
            Attempt(
                id: PushID(at: UnixTime(seconds: 8_990), random: 1, 2), lane: probeLane, number: 1,
                sentAt: UnixTime(seconds: 8_999), answeredAt: UnixTime(seconds: 9_000), outcome: .rejected,
                reason: .badDeviceToken, next: .again(at: UnixTime(seconds: 9_500)))
        ]
        report.ingresses = [
            IngressReport(
                configured("inbox"), peers: NoteCode("inbox relays"), connected: 1, of: 3, hears: true,
                queued: 9, lacks: NoteCode("one of them is slow"))
        ]
        let alerts: [Alert] = [
            .laneHalted(probeLane, .badDeviceToken), .certificateExpiring(configured("public"), days: 0)
        ]
        report.alerts = alerts.map { StandingAlert($0, toldAt: report.startedAt) }
        report.certificates = [
            CertificateReport(configured("public"), days: 0), CertificateReport(configured("inner"), days: 33)
        ]
        return report
    }

    @Test("The dashboard shows lanes, outbox, origins, alerts and certificates, and loads or runs nothing")
    func dashboard() async {
        let face = AdminFace(
            configured("admin"), token: nil, metrics: PrometheusMetrics(), checks: [],
            status: { Self.busy }, world: ManualClock(start: UnixTime(seconds: 9_200)).world(seed: 1))
        let answer = await face.respond(to: HTTPInbound(.get, path: "/", isLoopback: true, tag: 0))
        let page = String(decoding: answer.body, as: UTF8.self)
        for words in [
            "<h1>Sealbell <small>1</small>", "Up for 2 h", "12 origins signed up", "7 pushes owed, 900 B",
            "the oldest for 2 h", "<span class=\"pill good\">Ready</span>",
            "<span class=\"pill bad\">2 alerts</span>",
            "<td data-of=\"Lane\"><span>acme/apns/production</span></td>",
            "<span class=\"bad\">halted</span>",
            "data-of=\"Connections\"><span>2</span></td><td class=\"n\" data-of=\"In flight\"><span>5</span>",
            "data-of=\"In memory\"><span>3</span>", "data-of=\"In the store\"><span>4</span>",
            "<span>BadDeviceToken<small>3 min ago</small>", "<strong>Lane halted · acme/apns/production",
            "is halted (BadDeviceToken)", "listener public has expired", "<span>inner</span>",
            "<span class=\"good\">33 days left</span>", "<span class=\"bad\">expired</span>",
            "02:30:00 UTC<small>3 min ago</small>", "rejected", "tried again in 5 min",
            Self.busy.refusals[0].id.text, "<span class=\"warn\">1 of 3</span> inbox relays",
            "one of them is slow"
        ] { #expect(page.contains(words), "\(words)") }
        for part in ["<script", "src=", "href=", "url(", "http://", "https://", "<form", "<iframe", "onload"]
        {
            #expect(!page.lowercased().contains(part), "\(part)")
        }
        let policy = answer.headers.first { "\($0.name)" == "content-security-policy" }?.value
        #expect(policy?.hasPrefix("default-src 'none'") == true)
        #expect(policy?.contains("frame-ancestors 'none'") == true && policy?.contains("script") == false)
        // No style but the page's own, which the policy names by its digest.
        let style = page.firstMatch(of: #/<style>([^<]*)<\/style>/#)?.1
        let digest = Base64.text(Array(SHA256.hash(data: Array((style ?? "").utf8))))
        #expect(policy?.contains("style-src 'sha256-\(digest)'") == true)
        #expect(!page.contains("style=") && policy?.contains("unsafe") == false)
        let json = try? JSONValue.parse(AdminPages.status(Self.busy, now: UnixTime(seconds: 9_200)))
        #expect(json?["outbox"]?["oldest_seconds"]?.int64 == 7_200 && json?["origins"]?.int64 == 12)
        #expect(
            json?["alerts"]?.array?.map { $0["alert"]?.string } == ["certificate_expiring", "lane_halted"])
        let lane = json?["lanes"]?[0]
        #expect(lane?["connections"]?.int64 == 2 && lane?["reason_at"]?.int64 == 9_000)
        let refusal = json?["refusals"]?[0]
        #expect(refusal?["at"]?.int64 == 9_000 && refusal?["reason"]?.string == "BadDeviceToken")
        #expect(refusal?["outcome"]?.string == "rejected")
        #expect(refusal?["push"]?.string == Self.busy.refusals[0].id.text)
        let ingress = json?["ingresses"]?[0]
        #expect(ingress?["connected"]?.int64 == 1 && ingress?["known"]?.int64 == 3)
        #expect(ingress?["lacks"]?.string == "one of them is slow")
        #expect(
            json?["certificates"]?[1]?["days"]?.int64 == 33 && json?["lanes"]?[0]?["in_flight"]?.int64 == 5)
    }

    private static func page(
        _ report: StatusReport, _ health: Health = Health(checks: [], roles: [])
    ) -> String {
        let page = Dashboard(report: report, health: health, now: UnixTime(seconds: 9_200))
        return String(decoding: page.html, as: UTF8.self)
    }

    @Test("What stands on the page is escaped, wherever it came from")
    func escaping() {
        var report = Self.busy
        let odd = NoteCode("<i>\"&'")
        report.version = odd
        report.ingresses[0].peers = odd
        report.ingresses[0].lacks = odd
        report.alerts[0].sentence = odd.text
        report.alerts.append(
            StandingAlert(
                Alert.Subject(kind: .instanceUnheard, name: odd.text), sentence: "",
                toldAt: report.startedAt))
        report.reload = ReloadReport(at: report.startedAt, refusal: odd.text)
        let page = Self.page(report, Health(checks: [(odd, false)], roles: []))
        #expect(page.ranges(of: "&lt;i&gt;&quot;&amp;&#39;").count == 7 && !page.contains("<i>"))
        // As Swift counts characters, these are no quote and no angle bracket.
        let marked = PageText.escaped("\"\u{301}<\u{338}")
        #expect(Array(marked.utf8) == Array("&quot;\u{301}&lt;\u{338}".utf8))
    }

    @Test("One is one, and what nobody knows is no number")
    func grammar() {
        var report = emptyStatus
        (report.origins, report.outboxRows, report.outboxBytes) = (1, 1, 2_048)
        #expect(Self.page(report).contains("; 1 origin signed up; 1 push owed, 2 KiB."))
        (report.origins, report.outboxRows, report.outboxBytes) = (0, 0, 0)
        #expect(Self.page(report).contains("; 0 origins signed up; 0 pushes owed."))
        (report.origins, report.outboxRows, report.outboxBytes) = (nil, nil, nil)
        #expect(Self.page(report).contains("; origins unknown; the store does not say what is owed."))
        report.outboxRows = 1_234_567
        #expect(Self.page(report).contains("1,234,567 pushes owed"))
    }

    @Test("A check or an instance that fails is named above all, and who hears nobody is told apart")
    func unready() {
        let roles = [(name: configured("inbox"), isWell: false), (name: configured("door"), isWell: true)]
        let page = Self.page(
            Self.busy, Health(checks: [(NoteCode("store"), true), (NoteCode("outbox"), false)], roles: roles))
        #expect(page.contains("<span class=\"pill bad\">Not ready: outbox</span>"))
        #expect(page.contains("<span class=\"bad\">not ready</span>"))
        #expect(page.contains("who calls its listener"))
        let silent = Self.page(emptyStatus, Health(checks: [], roles: [(configured("inbox"), false)]))
        #expect(silent.contains("Not ready: no instance"))
    }

    @Test("Graphs say their figures in words too, break where nobody looked, and take any value")
    func graphs() {
        let start = ContinuousClock.now
        var report = emptyStatus
        #expect(Self.page(report).contains("still being counted") && !Self.page(report).contains("<svg"))
        report.instant = start + .seconds(3_600)
        report.history = [0, 30, 60, 600, 630, 3_590].map { second in
            var sample = FigureSample(at: start + .seconds(second), seconds: 30)
            sample.accepted = Int64(second)
            sample.refused = second == 60 ? .max : 1
            sample.delivery = second == 30 ? nil : .init(median: 0.04, slow: .infinity)
            sample.owed = second
            return sample
        }
        let page = Self.page(report)
        #expect(page.ranges(of: "<svg").count == 6)
        #expect(page.contains("Pushes a minute: accepted 7,180, not accepted 2 now"))
        #expect(page.contains("Owed pushes: owed 3,590 now, 3,590 at most in the last hour"))
        #expect(page.contains("Memory: resident – now"))
        // Three runs: the first three samples, the next two, and the last alone.
        let owed = page.firstMatch(of: #/Owed pushes: [^>]*>\s*<path[^>]*>.*?class="c0" d="([^"]*)"/#)?.1
        #expect(owed?.count(where: { $0 == "M" }) == 3 && owed?.contains("nan") == false)
        #expect(DashboardGraph.ceiling(0) == 1 && DashboardGraph.ceiling(.nan) == 1)
        #expect(DashboardGraph.ceiling(3) == 5 && DashboardGraph.ceiling(1_001) == 2_000)
    }
}
