package import Delivery
import MarmotPush

/// Every bound of the way in from Nostr relays, with its reason. With several processes on one store each has
/// these for itself: all of them hear everything.
package struct NostrLimits: Sendable {
    /// Inbox relays of one instance: each costs a connection, and two or three are what clients publish to.
    package static let relays = 16

    /// Bytes of events that wait for a worker, of all relays of an instance. Each relay may fill an equal
    /// share of it: then its socket is not read, and only this relay waits. Some relays drop events that are
    /// not read in time (nostr-sdk's does), so a share holds a burst of some seconds.
    package var queuedBytes = 32 << 20
    /// The least share: eight events of the largest size.
    package var leastShare = 2 << 20

    /// A relay's share of the queue, in bytes.
    package func share(among relays: Int) -> Int { max(leastShare, queuedBytes / max(1, relays)) }

    /// Wraps that are opened at once, one for each core at most, and none on an event loop: reading goes on
    /// beside.
    package var workers = 8
    /// How long a wrap that falls to another process is held for the case that it has died: its lease, the
    /// renewal at which we read of its end, and as much again as that may be late.
    package var heldFor = Duration.seconds(35)
    /// Wraps held, and their bytes: half a minute at a hundred a second. When there are more, the oldest is
    /// dropped.
    package var heldEvents = 4_096
    package var heldBytes = 8 << 20
    /// A relay that cannot be reached is dialled once in half of this to the whole, for so long: most are
    /// back within minutes, and their next events must not wait for us. After that the doubling begins.
    package var eagerRedial = Duration.seconds(1)
    package var eager = Duration.seconds(600)
    /// The same holds for a relay that ended a connection on which it had been listened at for so long; one
    /// that drops them sooner is treated like one that fails.
    package var steady = Duration.seconds(5)
    /// Reconnecting otherwise: 1 s doubling to 60 s with full jitter (NIP-01 says nothing; relays ban clients
    /// that dial often). The same for a subscription that a relay closed.
    package var backoff = Backoff(base: .seconds(1), cap: .seconds(60), floorCap: .zero)
    /// After so long with a subscription in force, the next fault counts as the first (§5.1).
    package var health = Duration.seconds(60)
    /// How long a challenge is waited for before subscribing: some relays challenge on connecting and ignore
    /// earlier requests (§5.1). One round trip to the other side of the earth.
    package var greeting = Duration.milliseconds(300)
    /// The same for a relay whose document says that it asks for authentication.
    package var announcedGreeting = Duration.seconds(2)
    /// How long the answer to an authentication is waited for (§5.1).
    package var authentication = Duration.seconds(2)
    /// If a relay does not say the end of its stored events, they count as over when none has come for this
    /// long.
    package var endOfStored = Duration.seconds(10)
    /// The same however many come: 6,000 wraps of 8 KiB, the most that a common relay gives, over 4 Mbit/s.
    package var storedEvents = Duration.seconds(120)
    /// An answer of so many stored events may be cut short by the relay's own bound (500 at strfry): the next
    /// page is asked for, up to so many pages. Twenty thousand events are a hundred megabytes or so, which is
    /// more than relays like to send.
    package var fullPage = 100
    package var pages = 40
    /// How long the answer to a published relay list is waited for.
    package var listAnswer = Duration.seconds(10)
    /// The relay list is published again after so long, for relays lose events (§5.1).
    package var listInterval = Duration.seconds(86_400)
    /// A subscription that a relay has refused with `blocked` or `restricted` is asked for again after the
    /// first span, doubling to the second: relays also say these words when they are short of room or do not
    /// know yet that somebody has paid, and an operator may have fixed the cause.
    package var firstRefusalRest = Duration.seconds(60)
    package var refusalRest = Duration.seconds(3_600)
    /// A relay that says a NOTICE may have ended the subscription with it: strfry up to 1.0 has no other word
    /// for it. We subscribe again, and then not before the first span, doubling to the second, has passed.
    package var firstNoticeRest = Duration.seconds(60)
    package var noticeRest = Duration.seconds(3_600)
    /// Challenges of one connection that are answered: each costs signatures.
    package var challenges = 8
    /// Messages of one connection that nobody asked for, before it is ended.
    package var strays = 1_000
    /// Whether a trigger comes through a relay is tested so long after the start, by when the subscriptions
    /// stand, and then once in so long: a relay that hands nothing out is known within the hour, and 24
    /// events a day burden none.
    package var firstSelfTest = Duration.seconds(60)
    package var selfTestEvery = Duration.seconds(3_600)
    /// How long a test may take to be published, and as long to come back.
    package var selfTestSpan = Duration.seconds(30)
    /// While a relay hands nothing out, it is tested again after so long, doubling to ``selfTestEvery``.
    package var selfTestAgain = Duration.seconds(60)
    /// Grain of all these spans.
    package var tick = Duration.milliseconds(200)
    /// Wraps are dated back up to two days (NIP-59), by clocks that may be slow: stored ones are asked for
    /// from then on.
    package static let backlog = MarmotLimits.backdating + MarmotLimits.clockSlack

    package init() {}
}
