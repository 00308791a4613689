import HTTP2Client
import HTTPIngress
import NostrIngress
import WebSocket
import ZulipPush

/// The deadlines of what stands around the delivery core. A relay has them as they are; tests that are of no
/// deadline are given minutes, since a machine that stands still for ten seconds is no fault of a peer's.
struct RelaySpans: Sendable {
    var ingress = IngressLimits()
    var pushServices = HTTP2Options()
    var nostr = NostrLimits()
    var nostrConnections = WebSocketLimits()
    /// How long an answer to a Zulip server waits for first attempts.
    var zulipReply = ZulipLimits.replyDeadline
    /// How often an operator's alerts are looked at, and what is waited for first.
    var watch = RelayWatch.Limits()
}
