import PushModel
import StatusPush
import WakuIngress
import WireFormats

extension StatusInstance {
    /// What of its role's notes the statistics tell.
    static let countedNotes = [
        "status.registered", "status.unregistered", "status.query", "status.request",
        "status.request-unwanted"
    ]

    /// `GET /status/statistics`: what an instance hears, follows and has answered.
    ///
    /// - Returns: JSON.
    func statistics() -> [UInt8] {
        let waku = self.waku
        var json = JSONWriter()
        json.beginObject()
        func number(_ name: StaticString, _ value: Int) {
            json.key(name)
            json.int(Int64(value))
        }
        json.key("instance")
        json.string(name.text)
        number("uptime", uptimeSeconds)
        number("registered", tally("status.registered"))
        number("unregistered", tally("status.unregistered"))
        number("queries", tally("status.query"))
        number("requests", tally("status.request", "status.request-unwanted"))
        number("topics", waku.topics)
        number("topic_reads", topicReads)
        json.key("waku")
        json.beginObject()
        json.key("listening")
        json.bool(waku.isListening)
        json.key("health")
        json.string(waku.health.rawValue)
        number("heard", waku.heard)
        number("received", waku.received)
        number("published", waku.published)
        number("queued", waku.queued)
        number("publishing", waku.publishing)
        json.key("gap")
        json.bool(waku.hasGap)
        json.endObject()
        json.endObject()
        return json.bytes
    }
}
