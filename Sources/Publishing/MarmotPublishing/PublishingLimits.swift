/// Every bound of publishing, with its reason.
package struct PublishingLimits: Sendable {
    // MARK: one relay

    /// A relay's document (NIP-11).
    static let documentDeadline = Duration.seconds(5)
    /// Relays that one event is published to at once: lists name at most sixteen.
    static let publications = 16
    /// Relay lists that are looked at when a key's is asked for.
    static let lists = 64
    /// Events of one request that are read: as many as common relays say at once, and a frame each.
    static let readEvents = 1_000
    /// Irrelevant messages of one relay before it is given up.
    static let strays = 2_000
    // MARK: what is remembered

    /// A relay list is looked up again after a day (docs/conformance/marmot.md).
    static let listLife = Duration.seconds(86_400)
    /// How long it holds that relays have no list for a key.
    static let absentLife = Duration.seconds(300)
    /// The same for a key for which no relay answered, and for a list without a usable relay.
    static let doubtLife = Duration.seconds(60)
    /// A relay's document, and the knowledge that it has none.
    static let documentLife = Duration.seconds(86_400)
    static let noDocumentLife = Duration.seconds(3_600)
    /// Servers of which something is remembered: an app's own, and those of the other builds in its groups.
    static let rememberedServers = 64
    static let rememberedDocuments = 256
    /// What ``MarmotPublisher/kept()`` wrote: 64 events, of which none that is longer is kept.
    static let keptEventBytes = 16 << 10
    static let keptBytes = 2 << 20

    // MARK: one wake

    /// Servers that are served at once. Those with built-in relays come first, then those with the most
    /// phones, so that a member who invents servers does not delay real ones.
    static let serversAtOnce = 8
    /// Servers of one wake; the rest are reported as not reached.
    static let servers = 32
    /// Triggers of one server that are on their way at once: each is a connection to each of its relays.
    static let triggersAtOnce = 4

    /// How long a relay may be silent after a NOTICE, a challenge or a proof, before that counts as its
    /// answer: one round trip to the other side of the earth, through Tor.
    package var grace = Duration.seconds(2)
    /// How long a relay list is looked for.
    package var lookUp = Duration.seconds(10)
    /// How long one trigger may take to one relay; through Tor a circuit is built first.
    package var publication = Duration.seconds(15)
    package var publicationByTor = Duration.seconds(60)
    /// The least pause before a trigger that nobody took is published once more; as much again at random.
    package var pause = Duration.seconds(2)

    package init() {}
}
