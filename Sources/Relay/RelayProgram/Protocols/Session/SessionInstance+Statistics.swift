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
        json.counts([
            ("notifications", link.received), ("notified", tally("session.notified")),
            ("subscription", tally("session.subscribed")), ("sub_renew", tally("session.renewed")),
            ("unsubscribed", tally("session.unsubscribed"))
        ])
        json.beginObject("subscriptions")
        json.member("total", link.watches)
        json.endObject()
        json.counts([
            ("connections", link.connected), ("pending_connections", link.dialling),
            ("snodes", link.nodes), ("snodes_ours", link.ours), ("swarms", link.swarms)
        ])
        json.member("block_hash", link.blockHash)
        json.member("block_height", Int64(clamping: link.height))
        json.member("oxend", link.isDaemonConnected)
        json.member("core_key", coreKey)
    }
}
