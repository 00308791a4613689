package import MessageSockets
import PushModel
import SessionPush

/// Rows of a swarm that are to be read for one request.
package struct WatchReading: Sendable {
    package let id: Int
    /// Rising.
    package let revisions: [UInt64]
    /// Up to which revision the table was looked through.
    package let through: UInt64

    package init(id: Int, revisions: [UInt64], through: UInt64) {
        self.id = id
        self.revisions = revisions
        self.through = through
    }
}

/// The result: one request, which nodes of the swarm share.
package struct WatchBatch: Sendable {
    /// The watches of the request, in its order.
    package var shown: [UInt64]
    /// Rows that have changed or gone, or whose signature is too old by now.
    package var ended: [UInt64]
    /// The revision up to which everything is done.
    package var through: UInt64
    /// `nil`: there is nothing to show.
    package var body: SharedBytes?

    package init(shown: [UInt64], ended: [UInt64], through: UInt64, body: SharedBytes?) {
        self.shown = shown
        self.ended = ended
        self.through = through
        self.body = body
    }
}
