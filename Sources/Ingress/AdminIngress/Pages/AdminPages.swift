import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// The forms in which a report is shown. Every text in them comes from our own configuration or from an enum.
enum AdminPages {
    /// `{"ready":true,"checks":{"store":true},"roles":{"main":true}}`; for a stranger the first alone.
    static func health(_ health: Health, tells: Bool) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("ready", health.isReady)
        if tells {
            write("checks", health.checks.map { ($0.name.text, $0.isWell) }, &json)
            if !health.roles.isEmpty {
                write("roles", health.roles.map { ($0.name.text, $0.isWell) }, &json)
            }
        }
        json.endObject()
        return json.bytes
    }

    /// `{"ready":true}`
    static func readiness(_ isReady: Bool) -> [UInt8] { Array("{\"ready\":\(isReady)}".utf8) }

    private static func write(_ key: String, _ results: [(String, Bool)], _ json: inout JSONWriter) {
        json.key(key)
        json.beginObject()
        for (name, isWell) in results {
            json.key(name)
            json.bool(isWell)
        }
        json.endObject()
    }

    static func status(_ report: StatusReport, now: UnixTime) -> [UInt8] {
        var json = JSONWriter(reserving: 1024)
        json.beginObject()
        json.member("version", report.version.text)
        json.member("uptime_seconds", now.since(report.startedAt).components.seconds)
        json.beginObject("outbox")
        json.optional("rows", report.outboxRows.map { Int64($0) })
        json.optional("bytes", report.outboxBytes.map { Int64($0) })
        json.optional("oldest_seconds", age(report, now))
        json.endObject()
        json.optional("origins", report.origins.map { Int64($0) })
        json.beginArray("lanes")
        for lane in report.lanes { write(lane, &json) }
        json.endArray()
        json.beginArray("ingresses")
        for ingress in report.ingresses { write(ingress, &json) }
        json.endArray()
        json.beginArray("refusals")
        for refusal in report.refusals { write(refusal, &json) }
        json.endArray()
        json.beginArray("alerts")
        for alert in sorted(report.alerts) { write(alert, &json) }
        json.endArray()
        json.beginArray("certificates")
        for certificate in report.certificates {
            json.beginObject()
            json.member("listener", certificate.listener.text)
            json.member("days", Int64(certificate.days))
            json.endObject()
        }
        json.endArray()
        json.beginObject("unread_clients")
        for (listener, requests) in report.unreadClients {
            json.key(listener.text)
            json.int(Int64(requests))
        }
        json.endObject()
        write(report.reload, now, &json)
        json.endObject()
        return json.bytes
    }

    private static func write(_ reload: ReloadReport?, _ now: UnixTime, _ json: inout JSONWriter) {
        json.key("reload")
        guard let reload else { return json.null() }
        json.beginObject()
        json.member("seconds_ago", max(0, now.since(reload.at).components.seconds))
        json.optional("refused", reload.refusal)
        json.endObject()
    }

    private static func write(_ lane: LaneReport, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("lane", lane.lane.description)
        json.member("state", lane.state.rawValue)
        json.member("in_memory", Int64(lane.inMemory))
        json.member("parked", Int64(lane.parked))
        json.optional("reason", lane.reason?.rawValue)
        json.optional("reason_at", lane.reasonAt?.seconds)
        json.member("in_flight", Int64(lane.inFlight))
        json.optional("connections", lane.connections.map { Int64($0) })
        json.endObject()
    }

    private static func write(_ ingress: IngressReport, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("instance", ingress.instance.text)
        json.member("peers", ingress.peers.text)
        json.member("connected", Int64(ingress.connected))
        json.member("known", Int64(ingress.known))
        json.member("hears", ingress.hears)
        json.member("queued", Int64(ingress.queued))
        json.optional("lacks", ingress.lacks?.text)
        json.endObject()
    }

    private static func write(_ refusal: Attempt, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("at", refusal.answeredAt.seconds)
        json.member("lane", refusal.lane.description)
        json.member("outcome", refusal.outcome.label)
        json.member("reason", refusal.reason.rawValue)
        json.member("push", refusal.id.text)
        json.endObject()
    }

    private static func write(_ alert: StandingAlert, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("alert", alert.subject.kind.rawValue)
        json.member("subject", alert.subject.name)
        json.member("sentence", alert.sentence)
        json.endObject()
    }

    private static func sorted(_ alerts: [StandingAlert]) -> [StandingAlert] {
        alerts.sorted {
            ($0.subject.kind.rawValue, $0.subject.name) < ($1.subject.kind.rawValue, $1.subject.name)
        }
    }

    /// Seconds for which the oldest push has been owed.
    private static func age(_ report: StatusReport, _ now: UnixTime) -> Int64? {
        report.oldestAt.map { max(0, now.since($0).components.seconds) }
    }

    // MARK: Dashboard

    /// Fields of the page's answer: nothing is loaded, framed, sent or run.
    static let dashboardPolicy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'"

    /// A page without scripts, which reloads itself every five seconds. Its texts are configured names, words
    /// of closed lists and our own sentences; all are still escaped.
    static func dashboard(_ report: StatusReport, now: UnixTime) -> [UInt8] {
        let owed =
            report.outboxRows.map { "\($0) pushes owed, \(bytes(report.outboxBytes ?? 0))" }
            .map { $0 + (age(report, now).map { ", the oldest for \(span($0))" } ?? "") }
            ?? "the store does not say what is owed"
        let origins = report.origins.map { "\($0) origins signed up" } ?? "origins unknown"
        let page = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sealbell</title>
            <meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="5">
            <style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}
            td,th{padding:.3em 1em;border-bottom:1px solid #ccc;text-align:left}
            td.n{text-align:right}.halted,.unanswered,.ended{color:#b00}</style></head><body>
            <h1>Sealbell \(escaped(report.version.text))</h1>
            <p>Up for \(span(now.since(report.startedAt).components.seconds)); \(origins); \(owed).</p>
            \(alerts(report))<h2>Lanes</h2>
            <table><tr><th>Lane</th><th>State</th><th>In flight</th><th>In memory</th><th>In the store</th>
            <th>Last refusal</th></tr>
            \(report.lanes.map(row).joined())</table>
            \(certificates(report))</body></html>

            """
        return Array(page.utf8)
    }

    private static func row(_ lane: LaneReport) -> String {
        "<tr><td>\(escaped(lane.lane.description))</td>"
            + "<td class=\"\(lane.state.rawValue)\">\(lane.state.rawValue)</td>"
            + "<td class=\"n\">\(lane.inFlight)</td><td class=\"n\">\(lane.inMemory)</td>"
            + "<td class=\"n\">\(lane.parked)</td><td>\(escaped(lane.reason?.rawValue ?? ""))</td></tr>\n"
    }

    private static func alerts(_ report: StatusReport) -> String {
        guard !report.alerts.isEmpty else { return "<p>No alert holds.</p>\n" }
        let items = sorted(report.alerts).map { "<li class=\"halted\">\(escaped($0.sentence))</li>\n" }
        return "<h2>Alerts</h2><ul>\(items.joined())</ul>\n"
    }

    private static func certificates(_ report: StatusReport) -> String {
        guard !report.certificates.isEmpty else { return "" }
        let rows = report.certificates.map { certificate in
            "<tr><td>\(escaped(certificate.listener.text))</td>"
                + (certificate.days > 0
                    ? "<td>\(certificate.days) days</td></tr>\n" : "<td class=\"ended\">ended</td></tr>\n")
        }
        return "<h2>Certificates</h2><table><tr><th>Listener</th><th>Left</th></tr>\(rows.joined())</table>\n"
    }

    /// `90 s`, `12 min`, `3 h`, `4 days`.
    private static func span(_ seconds: Int64) -> String {
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) days"
    }

    private static func bytes(_ count: Int) -> String {
        count < 1 << 20 ? "\(count >> 10) KiB" : "\(count >> 20) MiB"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }
}
