import MarmotPush

/// Every bound of publishing, with its reason.
package struct PublishingLimits: Sendable {
    // MARK: one relay

    /// Relays that one event is published to at once: lists name at most sixteen.
    static let publications = 16
    /// Events of one request that are read: as many as common relays say at once, and a frame each.
    static let readEvents = 1_000
    /// Irrelevant messages of one relay before it is given up.
    static let strays = 2_000

    /// How long a relay may be silent after a NOTICE, a challenge or a proof, before that counts as its
    /// answer: one round trip to the other side of the earth, through Tor.
    package var grace = Duration.seconds(2)
    /// How long a relay list is looked for.
    package var lookUp = Duration.seconds(10)
    /// How long one trigger may take to one relay; through Tor a circuit is built first.
    package var publication = Duration.seconds(15)
    package var publicationByTor = Duration.seconds(60)
    /// As ``MarmotLimits/secondTryPause``.
    package var pause = MarmotLimits.secondTryPause

    package init() {}
}
