/// Every bound of this protocol, each with its clause or its reason. Sections are of the Marmot fact sheet.
public enum MarmotLimits {
    /// One frame from or to a Nostr relay (§5.1).
    public static let frameBytes = 256 << 10
    /// An encrypted payload of NIP-44, in base64 (§3): it must fit a frame.
    public static let payloadBytes = 256 << 10
    /// Plaintext of NIP-44 with the short length prefix, as the official vectors have it.
    public static let shortPlaintextBytes = 65_535
    /// Nesting of any JSON text: a message holds an event, its tags and a tag; four more to pass over.
    public static let jsonDepth = 8
    /// Tags of one event, which many relays bound so too.
    public static let tags = 2_000
    /// Values of one tag: the longest known, in gossip, has five.
    public static let tagValues = 32
    /// Bytes of one tag's value: an encrypted token of 4096 bytes in hex, with room.
    public static let tagValueBytes = 10 << 10
    /// Unknown members of an event or a filter that are passed over.
    public static let unknownMembers = 16
    /// Characters of a subscription's name (NIP-01).
    public static let subscriptionCharacters = 64
    /// Filters of one request: ours sends one, and each is compared with every event.
    public static let filters = 16
    /// Values of one list of a filter.
    public static let filterValues = 1_000
    /// What is kept of a text that a relay sends; the rest says nothing to a program.
    public static let relayTextBytes = 512
    /// A relay's challenge (NIP-42): a random string.
    public static let challengeBytes = 1_024
    /// Address of a relay.
    public static let relayURLBytes = 512
    /// Relays taken from one list of kind 10050: NIP-17 asks for one to three.
    public static let relaysOfList = 16
    /// A wrap and its seal are dated back up to so much (NIP-59).
    public static let backdating = Duration.seconds(172_800)
    /// An authentication event may be off so much (NIP-42).
    public static let authenticationSkew = Duration.seconds(600)
    /// Bytes of a device token in the unpadded format (§2); FCM tokens anywhere (§5.3).
    public static let deviceTokenBytes = 4_096
    /// An APNs token of so many characters that are hex digits is text (§3).
    public static let textualTokenBytes = 64
    /// Encrypted tokens of one trigger: the texts' maxima (§2, §7).
    public static let seedTokens = 120
    public static let mip05Tokens = 100
    public static let pushV1Tokens = 32
}
