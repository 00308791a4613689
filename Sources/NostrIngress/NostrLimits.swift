package import Delivery

/// Every bound of the way in from Nostr relays, with its reason. With several processes on one store each has
/// these for itself: all of them hear everything.
package struct NostrLimits: Sendable {
    /// Inbox relays of one instance: each costs a connection, and two or three are what clients publish to.
    package static let relays = 16

    /// Events of one relay that wait for a worker. When so many do, the relay's socket is not read: it waits,
    /// and nobody else does. All relays together hold at most ``relays`` times as much.
    package var queuedEvents = 256
    /// The bytes of these: eight events of the largest size.
    package var queuedBytes = 2 << 20
    /// Wraps that are opened at once: more than a machine has cores gains nothing but memory.
    package var workers = 8
    /// How long a wrap that falls to another process is held for the case that it has died: its lease, the
    /// renewal at which we read of its end, and as much again as that may be late.
    package var heldFor = Duration.seconds(35)
    /// Wraps held, and their bytes: half a minute at a hundred a second. What comes beyond lets the
    /// oldest go.
    package var heldEvents = 4_096
    package var heldBytes = 8 << 20
    /// Reconnecting: 1 s doubling to 60 s with full jitter (fact sheet §5.1). The same for a subscription
    /// that a relay closed.
    package var backoff = Backoff(base: .seconds(1), cap: .seconds(60), floorCap: .zero)
    /// After so long with a subscription in force, the next fault counts as the first (§5.1).
    package var health = Duration.seconds(60)
    /// How long a challenge is waited for before the subscription is asked for: some relays challenge on
    /// connecting and pass over what was asked before (§5.1). One round trip to the other side of the earth.
    package var greeting = Duration.milliseconds(300)
    /// The same for a relay whose document says that it asks for authentication.
    package var announcedGreeting = Duration.seconds(2)
    /// How long the answer to an authentication is waited for (§5.1).
    package var authentication = Duration.seconds(2)
    /// A relay that says nothing of the end of its stored events is taken to have none left when so long none
    /// came.
    package var endOfStored = Duration.seconds(10)
    /// The same however many come: 6,000 wraps of 8 KiB, the most that a common relay gives, over 4 Mbit/s.
    package var storedEvents = Duration.seconds(120)
    /// How long the answer to a published relay list is waited for.
    package var listAnswer = Duration.seconds(10)
    /// The relay list is published again after so long, for relays lose events (§5.1).
    package var listInterval = Duration.seconds(86_400)
    /// A subscription that a relay has refused for good is asked for again after so long: an operator may
    /// have mended it.
    package var refusalRest = Duration.seconds(3_600)
    /// Challenges of one connection that are answered: each costs signatures.
    package var challenges = 8
    /// Messages of one connection that nobody asked for, before it is ended.
    package var strays = 1_000
    /// Grain of all these spans.
    package var tick = Duration.milliseconds(200)
    /// Wraps are dated back so much (NIP-59), so stored ones are asked for from then on.
    package static let backlog = Duration.seconds(172_800)

    /// A relay's document (NIP-11).
    package static let documentDeadline = Duration.seconds(5)
    /// Relays that one event is published to at once: lists name at most sixteen.
    package static let publications = 16
    /// Relay lists that are looked at when a key's is asked for.
    package static let lists = 64

    package init() {}
}
