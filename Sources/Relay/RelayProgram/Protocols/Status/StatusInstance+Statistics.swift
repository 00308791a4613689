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
        json.counts([
            ("registered", tally("status.registered")), ("unregistered", tally("status.unregistered")),
            ("queries", tally("status.query")),
            ("requests", tally("status.request", "status.request-unwanted")), ("topics", waku.topics),
            ("topic_reads", topicReads)
        ])
        json.beginObject("waku")
        json.member("listening", waku.isListening)
        json.member("health", waku.health.rawValue)
        json.counts([
            ("heard", waku.heard), ("received", waku.received), ("published", waku.published),
            ("queued", waku.queued), ("publishing", waku.publishing)
        ])
        json.member("gap", waku.hasGap)
        json.endObject()
    }
}
