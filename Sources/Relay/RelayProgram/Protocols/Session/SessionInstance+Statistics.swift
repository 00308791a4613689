import PushModel
import SwarmIngress
import WireFormats

extension SessionInstance {
    /// What of its role's notes the statistics tell.
    static let countedNotes = [
        "session.subscribed", "session.renewed", "session.unsubscribed", "session.notified"
    ]

    /// `GET /session/statistics`: what deployed push servers tell by `admin.get_stats`, as far as it is known
    /// here (docs/conformance/session.md).
    func statistics(into json: inout JSONWriter) {
        let link = self.link
        json.member("uptime", uptimeSeconds)
        json.member("notifications", link.received)
        json.member("notified", tally("session.notified"))
        json.member("subscription", tally("session.subscribed"))
        json.member("sub_renew", tally("session.renewed"))
        json.member("unsubscribed", tally("session.unsubscribed"))
        json.beginObject("subscriptions")
        json.member("total", link.watches)
        json.endObject()
        json.member("connections", link.connected)
        json.member("pending_connections", link.dialling)
        json.member("snodes", link.nodes)
        json.member("snodes_ours", link.ours)
        json.member("swarms", link.swarms)
        json.member("block_hash", link.blockHash)
        json.member("block_height", Int64(clamping: link.height))
        json.member("oxend", link.isDaemonConnected)
        json.member("core_key", coreKey)
    }
}
