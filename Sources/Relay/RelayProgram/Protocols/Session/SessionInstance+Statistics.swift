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
    ///
    /// - Returns: JSON.
    func statistics() -> [UInt8] {
        let link = self.link
        var json = JSONWriter()
        json.beginObject()
        func number(_ name: StaticString, _ value: Int) {
            json.key(name)
            json.int(Int64(value))
        }
        json.key("instance")
        json.string(name.text)
        number("uptime", uptimeSeconds)
        number("notifications", link.received)
        number("notified", tally("session.notified"))
        number("subscription", tally("session.subscribed"))
        number("sub_renew", tally("session.renewed"))
        number("unsubscribed", tally("session.unsubscribed"))
        json.key("subscriptions")
        json.beginObject()
        number("total", link.watches)
        json.endObject()
        number("connections", link.connected)
        number("pending_connections", link.dialling)
        number("snodes", link.nodes)
        number("snodes_ours", link.ours)
        number("swarms", link.swarms)
        json.key("block_hash")
        json.string(link.blockHash)
        json.key("block_height")
        json.int(Int64(clamping: link.height))
        json.key("oxend")
        json.bool(link.isDaemonConnected)
        json.key("core_key")
        json.string(coreKey)
        json.endObject()
        return json.bytes
    }
}
