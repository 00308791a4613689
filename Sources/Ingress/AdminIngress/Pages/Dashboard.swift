import Delivery
import PushModel

/// The operator's page: a report and a moment in, HTML out.
///
/// It has no script, loads nothing, and reloads itself. Its texts are configured names, words of closed lists
/// and our own sentences; all are still escaped.
struct Dashboard {
    private static let reloadSeconds = 10

    let report: StatusReport
    let health: Health
    let now: UnixTime

    var html: [UInt8] {
        let page = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sealbell</title>
            <meta name="viewport" content="width=device-width,initial-scale=1">
            <meta http-equiv="refresh" content="\(Self.reloadSeconds)">
            <style>\(DashboardStyle.css)</style></head><body>
            <header><h1>Sealbell <small>\(PageText.escaped(report.version.text))</small></h1>\(pills)</header>
            <p class="soft">\(summary)</p>
            <main>
            \(alerts)\(tiles)\(graphs)\(lanes)\(instances)\(refusals)\(certificates)\(notices)</main>
            <footer>As of \(PageText.clock(now)) UTC; this page reloads itself every \
            \(Self.reloadSeconds) seconds. The same as JSON: <code>/status</code>; every series:
            <code>/metrics</code>.</footer></body></html>

            """
        return Array(page.utf8)
    }

    // MARK: Above all

    private var pills: String {
        let failing = health.checks.filter { !$0.isWell }.map(\.name.text)
        let missing = failing.isEmpty ? "no instance" : failing.joined(separator: ", ")
        let ready =
            health.isReady
            ? Self.pill("Ready", "good") : Self.pill("Not ready: \(PageText.escaped(missing))", "bad")
        guard !report.alerts.isEmpty else { return ready + Self.pill("No alert", "good") }
        let tone = report.alerts.contains { !Self.canWait($0) } ? "bad" : "warn"
        return ready + Self.pill(PageText.counted(report.alerts.count, "alert"), tone)
    }

    private static func pill(_ text: String, _ tone: String) -> String {
        "<span class=\"pill \(tone)\">\(text)</span>"
    }

    /// In words, for who cannot see or copies it.
    private var summary: String {
        let up = "Up for \(PageText.span(max(0, now.since(report.startedAt).components.seconds)))"
        let origins =
            report.origins.map { "\(PageText.counted($0, "origin")) signed up" } ?? "origins unknown"
        return "\(up); \(origins); \(owed)."
    }

    private var owed: String {
        guard let rows = report.outboxRows else { return "the store does not say what is owed" }
        let size = rows == 0 ? "" : ", \(PageText.bytes(report.outboxBytes ?? 0))"
        let age = oldest.map { ", the oldest for \($0)" } ?? ""
        return "\(rows == 1 ? "1 push" : "\(PageText.grouped(rows)) pushes") owed\(size)\(age)"
    }

    private var oldest: String? {
        report.oldestAt.map { PageText.span(max(0, now.since($0).components.seconds)) }
    }

    /// Nothing is lost meanwhile.
    private static func canWait(_ alert: StandingAlert) -> Bool {
        alert.subject.kind.reminder >= .seconds(86_400)
    }

    private var alerts: String {
        guard !report.alerts.isEmpty else { return "" }
        let ordered = AdminPages.sorted(report.alerts)
        let cards = (ordered.filter { !Self.canWait($0) } + ordered.filter(Self.canWait)).map { alert in
            let words = alert.subject.kind.rawValue.replacing("_", with: " ")
            let title = words.prefix(1).uppercased() + words.dropFirst()
            let subject = alert.subject.name.isEmpty ? "" : " · \(PageText.escaped(alert.subject.name))"
            let told = alert.isInherited ? "An earlier process told of it" : "Last told"
            return """
                <div class="card alert\(Self.canWait(alert) ? " later" : "")"><strong>\
                \(PageText.escaped(title))\(subject)</strong><p>\(PageText.escaped(alert.sentence))</p>
                <p class="soft">\(told) \(PageText.ago(alert.toldAt, now)).</p></div>

                """
        }
        return "<section><h2>Alerts</h2>\n\(cards.joined())</section>\n"
    }

    // MARK: Figures

    private var tiles: String {
        let samples = report.history
        func tile(_ name: String, _ figure: String, _ note: String = "") -> String {
            "<div class=\"card\"><dt>\(name)</dt><dd>\(figure)\(note.isEmpty ? "" : "<small>\(note)</small>")"
                + "</dd></div>\n"
        }
        func sum(_ value: (FigureSample) -> Int64) -> String {
            PageText.grouped(Int(clamping: samples.reduce(Int64(0)) { $0 &+ value($1) }))
        }
        let size = report.outboxBytes.map { PageText.bytes($0) } ?? "the store does not say"
        let tiles = [
            tile("Owed pushes", report.outboxRows.map { PageText.grouped($0) } ?? "?", size),
            tile("Owed for", oldest ?? "–", "the oldest push"),
            tile("Accepted", sum(\.accepted), "in the last hour"),
            tile("Not accepted", sum(\.refused), "in the last hour"),
            tile("Calls", sum(\.calls), "in the last hour"),
            tile("Origins", report.origins.map { PageText.grouped($0) } ?? "?", "signed up")
        ]
        return "<dl class=\"tiles\">\(tiles.joined())</dl>\n"
    }

    private var graphs: String {
        guard let instant = report.instant, !report.history.isEmpty else {
            return "<section><h2>The last hour</h2><p class=\"soft\">The first half minute is still being "
                + "counted.</p></section>\n"
        }
        let all = DashboardGraph.all(report.history, now: instant).map(\.html).joined()
        return "<section><h2>The last hour</h2><div class=\"graphs\">\n\(all)</div></section>\n"
    }

    // MARK: Tables

    private struct Column {
        let name: String
        var isNumber = false
    }

    /// - Parameter rows: cells of HTML, as many as columns.
    private func table(_ title: String, _ columns: [Column], _ rows: [[String]]) -> String {
        guard !rows.isEmpty else { return "" }
        let head = columns.map { "<th\($0.isNumber ? " class=\"n\"" : "")>\($0.name)</th>" }
        let body = rows.map { row in
            let cells = zip(columns, row).map { column, cell in
                "<td\(column.isNumber ? " class=\"n\"" : "") data-of=\"\(column.name)\">"
                    + "<span>\(cell)</span></td>"
            }
            return "<tr>\(cells.joined())</tr>\n"
        }
        return """
            <section><h2>\(title)</h2><table><thead><tr>\(head.joined())</tr></thead><tbody>
            \(body.joined())</tbody></table></section>

            """
    }

    private var lanes: String {
        let columns = [
            Column(name: "Lane"), Column(name: "State"), Column(name: "Connections", isNumber: true),
            Column(name: "In flight", isNumber: true), Column(name: "In memory", isNumber: true),
            Column(name: "In the store", isNumber: true), Column(name: "Last refusal")
        ]
        return table(
            "Lanes", columns,
            report.lanes.map { lane in
                let word = Self.word(lane.state)
                let state =
                    "<span class=\"\(word.tone)\">\(lane.state.rawValue)</span>"
                    + "<small>\(word.meaning)</small>"
                let at = lane.reasonAt.map { "<small>\(PageText.ago($0, now))</small>" } ?? ""
                return [
                    PageText.escaped(lane.lane.description),
                    state,
                    lane.connections.map { PageText.grouped($0) } ?? "–", PageText.grouped(lane.inFlight),
                    PageText.grouped(lane.inMemory), PageText.grouped(lane.parked),
                    lane.reason.map { PageText.escaped($0.rawValue) + at } ?? "none"
                ]
            })
    }

    private static func word(_ state: LaneReport.State) -> (tone: String, meaning: String) {
        switch state {
        case .open: ("good", "connected")
        case .ready: ("good", "nothing is against it")
        case .untried: ("soft", "no push has needed it yet")
        case .idle: ("soft", "connected before, nothing to send")
        case .waiting: ("warn", "pushes wait in the store")
        case .unreachable: ("bad", "no connection comes about")
        case .unanswered: ("bad", "no answer for a minute")
        case .halted: ("bad", "only probes are sent")
        }
    }

    private var instances: String {
        let names = health.roles.map(\.name)
        let others = report.ingresses.map(\.instance).filter { name in !names.contains { $0 == name } }
        let columns = [
            Column(name: "Instance"), Column(name: "Ready"), Column(name: "Hears"),
            Column(name: "Waiting", isNumber: true)
        ]
        return table(
            "Instances", columns,
            (names + others).map { name in
                let ready: String =
                    switch health.isReady(name.text[...]) {
                    case true?: "<span class=\"good\">ready</span>"
                    case false?: "<span class=\"bad\">not ready</span>"
                    case nil: "–"
                    }
                guard let ingress = report.ingresses.first(where: { $0.instance == name }) else {
                    return [PageText.escaped(name.text), ready, "who calls its listener", "–"]
                }
                return [
                    PageText.escaped(name.text), ready, Self.hearing(ingress),
                    PageText.grouped(ingress.queued)
                ]
            })
    }

    private static func hearing(_ ingress: IngressReport) -> String {
        let count = "\(PageText.grouped(ingress.connected)) of \(PageText.grouped(ingress.known))"
        // A few of a thousand are always away.
        let isShort = ingress.connected * 10 < ingress.known * 9
        let tone = !ingress.hears ? "bad" : isShort ? "warn" : "good"
        let lacks = ingress.lacks.map { "<small>\(PageText.escaped($0.text))</small>" } ?? ""
        return "<span class=\"\(tone)\">\(count)</span> \(PageText.escaped(ingress.peers.text))\(lacks)"
    }

    private var refusals: String {
        let columns = [
            Column(name: "When"), Column(name: "Lane"), Column(name: "Reason"), Column(name: "What follows"),
            Column(name: "Push")
        ]
        return table(
            "Last refusals", columns,
            report.refusals.map { refusal in
                let at = refusal.answeredAt
                return [
                    "\(PageText.clock(at)) UTC<small>\(PageText.ago(at, now))</small>",
                    PageText.escaped(refusal.lane.description),
                    "\(PageText.escaped(refusal.reason.rawValue))<small>\(refusal.outcome.label)</small>",
                    follows(refusal.next), "<code>\(PageText.escaped(refusal.id.text))</code>"
                ]
            })
    }

    private func follows(_ next: Attempt.Next) -> String {
        switch next {
        case .ended: return "it has ended"
        case .waits: return "it waits for its lane"
        case .elsewhere: return "the other environment is tried"
        case .again(let at):
            let left = at.since(now).components.seconds
            return left > 0 ? "tried again in \(PageText.span(left))" : "tried again since"
        }
    }

    private var certificates: String {
        let columns = [Column(name: "Listener"), Column(name: "Certificate")]
        return table(
            "Certificates", columns,
            report.certificates.map { certificate in
                let tone = certificate.days <= 0 ? "bad" : certificate.days <= 14 ? "warn" : "good"
                let left =
                    certificate.days > 0 ? "\(PageText.counted(certificate.days, "day")) left" : "expired"
                return [PageText.escaped(certificate.listener.text), "<span class=\"\(tone)\">\(left)</span>"]
            })
    }

    private var notices: String {
        var lines: [String] = []
        if let reload = report.reload {
            let word = reload.refusal.map { "refused (\(PageText.escaped($0)))" } ?? "done"
            lines.append("The last reload, \(PageText.ago(reload.at, now)), was \(word).")
        }
        for (listener, requests) in report.unreadClients {
            let name = PageText.escaped(listener.text)
            lines.append(
                "At the listener \(name), \(PageText.counted(requests, "request")) came through a trusted "
                    + "proxy that named no client; see sealbell doctor.")
        }
        guard !lines.isEmpty else { return "" }
        return "<section><h2>Notices</h2>\(lines.map { "<p>\($0)</p>" }.joined())</section>\n"
    }
}
