import HTTPIngress
import PushModel
import WireFormats

/// The forms in which a report is shown. Every text in them comes from our own configuration or from an enum.
enum AdminPages {
    /// `{"ready":true,"checks":{"store":true}}`
    static func health(_ results: [(name: NoteCode, isWell: Bool)]) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("ready")
        json.bool(results.allSatisfy(\.isWell))
        json.key("checks")
        json.beginObject()
        for result in results {
            json.key(result.name.text)
            json.bool(result.isWell)
        }
        json.endObject()
        json.endObject()
        return json.bytes
    }

    static func status(_ report: StatusReport, now: UnixTime) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("version")
        json.string(report.version.text)
        json.key("uptime_seconds")
        json.int(now.since(report.startedAt).components.seconds)
        json.key("outbox")
        json.beginObject()
        json.key("rows")
        json.int(Int64(report.outboxRows))
        json.key("bytes")
        json.int(Int64(report.outboxBytes))
        json.endObject()
        json.key("lanes")
        json.beginArray()
        for lane in report.lanes {
            json.beginObject()
            json.key("lane")
            json.string(lane.lane.description)
            json.key("state")
            json.string(lane.state.rawValue)
            json.key("in_memory")
            json.int(Int64(lane.inMemory))
            json.key("parked")
            json.int(Int64(lane.parked))
            json.key("reason")
            if let reason = lane.reason { json.string(reason.rawValue) } else { json.null() }
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    /// A page without script, which asks for itself again every five seconds.
    static func dashboard(_ report: StatusReport, now: UnixTime) -> [UInt8] {
        let rows = report.lanes.map { lane in
            "<tr><td>\(escaped(lane.lane.description))</td><td class=\"\(lane.state.rawValue)\">"
                + "\(lane.state.rawValue)</td><td>\(lane.inMemory)</td><td>\(lane.parked)</td>"
                + "<td>\(lane.reason?.rawValue ?? "")</td></tr>"
        }.joined()
        let page = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sealbell</title>
            <meta http-equiv="refresh" content="5">
            <style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}
            td,th{padding:.3em 1em;border-bottom:1px solid #ccc;text-align:left}
            .halted{color:#b00}</style></head><body>
            <h1>Sealbell</h1><p>Up for \(now.since(report.startedAt).components.seconds) s;
            \(report.outboxRows) pushes owed, \(report.outboxBytes) bytes.</p>
            <table><tr><th>Lane</th><th>State</th><th>In memory</th><th>Parked</th><th>Reason</th></tr>
            \(rows)</table></body></html>

            """
        return Array(page.utf8)
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }
}
