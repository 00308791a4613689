/// Every bound of the way in from Nostr relays, with its reason.
package struct NostrLimits: Sendable {
    /// Inbox relays of one instance: each costs a connection, and two or three are what clients publish to.
    package var relays = 16

    package init() {}
}
