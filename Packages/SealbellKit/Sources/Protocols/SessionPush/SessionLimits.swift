/// Every bound of this protocol, each with its reason. The clauses stand in docs/conformance/session.md.
public enum SessionLimits {
    /// An account id: a prefix and a key (§2).
    public static let accountBytes = 33
    /// A key of Ed25519 or X25519, and a device's `enc_key`.
    public static let keyBytes = 32
    /// A signature of Ed25519.
    public static let signatureBytes = 64
    /// Prefix, flags, two reserved bytes, a key (§5.1).
    public static let subaccountBytes = 36
    /// Of the withdrawn scheme (§5.2).
    public static let subkeyTagBytes = 32

    /// Body of a call, and of the request inside an onion request (§3).
    public static let bodyBytes = 100_000
    /// Body of an onion request: the inner body, its own head of at most a few hundred bytes, and what a
    /// storage node forwards behind it. Deployed servers allow 10 MiB, of which nothing beyond this is used.
    public static let onionBodyBytes = 160 << 10
    /// The JSON behind an onion request's ciphertext: as much as a node's whole routing takes.
    public static let onionRoutingBytes = 16 << 10
    /// The JSON head of an inner request: method, endpoint and headers.
    public static let innerHeadBytes = 8 << 10
    /// Elements of one call: clients send a hundred at most (§3.4), and so many real ones fill a body.
    public static let elementsPerCall = 200
    /// Nesting of JSON: what is read is 3 deep, but members to ignore may nest; the reader recurses over
    /// them.
    public static let jsonDepth = 64
    /// Characters of the longest spelling of a byte field: a signature in hex, with room for padding.
    public static let fieldBytes = 256
    /// Namespaces of a subscription: clients ask for five (§4). A storage node is shown them all.
    public static let namespaces = 256
    /// Characters of a service's name (§9.5).
    public static let serviceBytes = 32
    /// Characters of a device token (§3.4).
    public static let tokenBytes = 32...999
    /// Characters of an APNs token: 64 hex digits (§8.3).
    public static let apnsTokenDigits = 64
    /// How long a signature holds, and with it a subscription (§3.1).
    public static let signatureLife = Duration.seconds(14 * 86_400)
    /// How far in the future a signature's time may lie: clocks differ (§3.1).
    public static let futureSignature = Duration.seconds(86_400)
    /// The same of an unsubscription, in both directions (§3.3).
    public static let unsubscribeWindow = Duration.seconds(86_400)
    /// How long after an end a subscription that was signed in the same second may follow it: a switch that
    /// is turned off and on, and the time that two requests take through the network's nodes.
    public static let sameSecond = Duration.seconds(60)
    /// Subscriptions of one signer for one account, each a device with its token: nobody has so many phones,
    /// but a phone gets another token with each installation, and the old ones stay for two weeks. An account
    /// has no bound of its own: a group is one account with a hundred members, each a signer.
    public static let subscriptionsPerSigner = 64

    /// A message's hash: 43 characters in practice (§9.5).
    public static let hashBytes = 32...99
    /// A message that goes into a push: base64 of it, sealed, must fit 4 KiB (§8.1).
    public static let pushMessageBytes = 2_500
    /// Lengths of sealed plaintexts are multiples of this (§8.2).
    public static let paddingBytes = 256
    /// Signers that are remembered in each of two generations, 4 MiB each: phones of one large node's
    /// neighbours, several times over.
    public static let provedSigners = 100_000
    /// How long a generation lasts: phones come again after 12 hours to seven days.
    public static let provedLife = Duration.seconds(7 * 86_400)

    /// Messages that the filter of duplicates remembers in each of its two generations, about 4 MiB each:
    /// all members of a swarm report one within seconds, and what comes later meets the store's marks.
    public static let seenMessages = 100_000
    /// How long a generation lasts (§9.5): an entry lives one to two.
    public static let seenLife = Duration.seconds(600)
    /// Subscriptions of which a message's pushes go in one commit, 512 KiB of pushes at most. An account's
    /// others follow in commits of their own.
    public static let rowsPerLookup = 128
    /// How long the relay owes a push, 14 days, whatever the message's own expiry says: what an account's
    /// swarm keeps longer, a device that was off so long fetches by itself.
    public static let custody = Duration.seconds(14 * 86_400)
    /// What an APNs push may have, all of it (docs/push-services.md §2.4).
    public static let apnsBytes = 4_096
}
