import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// The forms in which programs are shown a report; for people there is ``Dashboard``. Every text in them
/// comes from our own configuration or from an enum.
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

    static func sorted(_ alerts: [StandingAlert]) -> [StandingAlert] {
        alerts.sorted {
            ($0.subject.kind.rawValue, $0.subject.name) < ($1.subject.kind.rawValue, $1.subject.name)
        }
    }

    /// Seconds for which the oldest push has been owed.
    private static func age(_ report: StatusReport, _ now: UnixTime) -> Int64? {
        report.oldestAt.map { max(0, now.since($0).components.seconds) }
    }
}
