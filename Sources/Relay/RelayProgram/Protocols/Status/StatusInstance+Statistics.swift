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
    func statistics(into json: inout JSONWriter) {
        let waku = self.waku
        json.member("uptime", uptimeSeconds)
        json.member("registered", tally("status.registered"))
        json.member("unregistered", tally("status.unregistered"))
        json.member("queries", tally("status.query"))
        json.member("requests", tally("status.request", "status.request-unwanted"))
        json.member("topics", waku.topics)
        json.member("topic_reads", topicReads)
        json.beginObject("waku")
        json.member("listening", waku.isListening)
        json.member("health", waku.health.rawValue)
        json.member("heard", waku.heard)
        json.member("received", waku.received)
        json.member("published", waku.published)
        json.member("queued", waku.queued)
        json.member("publishing", waku.publishing)
        json.member("gap", waku.hasGap)
        json.endObject()
    }
}
