/// Every bound of this protocol, each with its clause or its reason. The clauses stand in
/// docs/conformance/marmot.md.
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
    /// Unknown members of an event or a filter that are passed over: 16.
    public static let unknownMembers = 16
    /// Characters of a subscription's name (NIP-01).
    public static let subscriptionCharacters = 64
    /// Filters of one request: ours sends one, and each is compared with every event.
    public static let filters = 16
    /// Values of one list of a filter.
    public static let filterValues = 1_000
    /// The part of a relay's text that is kept; the rest is of no use to a program.
    public static let relayTextBytes = 512
    /// A relay's challenge (NIP-42): a random string.
    public static let challengeBytes = 1_024
    /// Address of a relay.
    public static let relayURLBytes = 512
    /// Relays taken from one list of kind 10050: NIP-17 asks for one to three.
    public static let relaysOfList = 16
    /// A wrap and its seal are dated back up to so much (NIP-59).
    public static let backdating = Duration.seconds(172_800)
    /// A sender's clock may be an hour slow: wraps are asked for from so much earlier.
    public static let clockSlack = Duration.seconds(3_600)
    /// An authentication event may be off so much (NIP-42).
    public static let authenticationSkew = Duration.seconds(600)
    /// Bytes of a device token in the unpadded format (§2); FCM tokens anywhere (§5.3).
    public static let deviceTokenBytes = 4_096
    /// An APNs token of so many characters that are hex digits is text (§3).
    public static let textualTokenBytes = 64
    /// Encrypted tokens of one trigger: the texts' maxima (§2, §7). The seed text names none but the frame,
    /// which holds 190 tokens of APNs.
    public static let seedTokens = 190
    /// Encrypted tokens of one trigger in MIP-05.
    public static let mip05Tokens = 100
    /// Encrypted tokens of one trigger in `push-v1`.
    public static let pushV1Tokens = 32

    // MARK: gossip and the token store (§4.2 to §4.4)

    /// Tokens that one leaf says by tags: one for each push service and some to spare (spec, "Size
    /// Constraints").
    public static let tokensOfLeaf = 8
    /// Records of `push-v1` under one leaf: each names another push service or server.
    public static let recordsOfLeaf = 8
    /// Entries of one list by tags: groups have about 200 tokens (spec, "Implementation Considerations").
    public static let listedTokens = 1_000
    /// Entries of one list of `push-v1`; one more voids it.
    public static let recordsOfList = 32
    /// A record as JSON: 1448 characters of token, keys and signature, a hint of the full length.
    static let recordBytes = 2_560
    /// A padded token in base64.
    static let encodedTokenBytes = 1_448
    /// Content of one list that we send: with MLS, padding and base64 around it, it fits a 64 KiB frame.
    static let gossipEventBytes = 36 << 10
    /// A leaf's entry in the store: eight of the longest tokens, and eight records.
    static let leafBytes = 1 << 20
    /// What a device reads back of what it has kept of a group: 200 leaves of `push-v1` take 0.3 MiB.
    public static let deviceKeptBytes = 4 << 20
    /// Rumors (32) that a device keeps until the group has them: of an app that says nothing the newest.
    public static let owedRumors = 32
    /// The pause before an app is asked again for what it could not do.
    static let callPause = Duration.seconds(15)
    /// An app that has not answered by then will not: what it was to say is said again. Not sooner, because
    /// one that collects what it says while there is no network would collect it each time.
    static let sayLife = Duration.seconds(3_600)
    /// How long an app need not speak of a token that is under way.
    static let quietTime = Duration.seconds(300)
    /// Kinds of what members tell each other of tokens.
    static let gossipKinds = [447, 448, 449, 450]
    /// Random bytes of a request's nonce.
    static let nonceBytes = 16
    /// Tokens said by tags are forgotten after 35 days.
    public static let tokenLife = Duration.seconds(35 * 86_400)
    /// A device renews its own token after so long; later texts than the seed say 25 to 35 days, at random,
    /// of which the last day is left out, so that no one forgets the token first.
    public static let refresh = Duration.seconds(30 * 86_400)
    /// The least age at which a device renews its own token, 25 days.
    public static let refreshLeast = Duration.seconds(25 * 86_400)
    /// At random it renews up to nine days later: 34 days at most, within ``tokenLife``.
    public static let refreshSpread = Duration.seconds(9 * 86_400)
    /// Old tokens are looked for so often.
    static let pruneEvery = Duration.seconds(86_400)
    /// An answer to a request waits at random for at most two seconds.
    public static let answerDelay = Duration.seconds(2)
    /// One member's requests are answered once in so long.
    static let answerPause = Duration.seconds(30)
    /// Answers that wait at once.
    static let pendingAnswers = 10
    /// An owner's clock may be ahead an hour.
    public static let ownerClockAhead = Duration.seconds(3_600)

    // MARK: the origin (§4.5 to §4.7, §7)

    /// A frame that relays commonly take, `["EVENT",…]` and all.
    public static let commonFrameBytes = 64 << 10
    /// Text of one NIP-44 layer that every deployed library reads: rust-nostr's own ceiling (§3).
    static let layerBytes = 65_408
    /// Encrypted tokens of one trigger as ours are written (§7).
    static let seedBatch = 60
    static let shortBatch = 75
    static let longBatch = 19
    /// Fewest items of a trigger of the seed text ("Event Size Padding").
    public static let seedLeastItems = 10
    /// Messages of one group are collected for a random time between these.
    public static let burstLeast = Duration.seconds(1)
    /// The longest time for which messages of one group are collected (spec, "Rate Limiting").
    public static let burstMost = Duration.seconds(2)
    /// Groups whose messages are collected at once.
    public static let openBursts = 1_024
    /// A relay's information document (NIP-11).
    public static let informationBytes = 64 << 10

    // MARK: the relay (§5)

    /// Keys that a server holds at once: two while it changes its key, and a change that is cut short.
    public static let serverKeys = 3
    /// Raw bytes of an APNs token: Apple promises no length, and takes no path of more than 200 digits.
    public static let apnsTokenBytes = 100
    /// How long the ids of wraps and rumors are held: as far back as wraps are asked for, and five minutes
    /// (§5.1, §5.2 step 3).
    public static let replaySpan = backdating + clockSlack + .seconds(300)
    /// How long the content of a `push-v1` trigger is held (§5.2 step 7): deployed clients publish a trigger
    /// several times within seconds, and write the same content for the next message of a conversation.
    public static let contentReplaySpan = Duration.seconds(30)
    /// Between two wakes of one device, unless the operator says otherwise.
    public static let devicePause = Duration.seconds(1)
    /// Percent of one core that an instance may use for opening what strangers send.
    public static let cpuPercent = 50
    /// How long a push service keeps a wake for a phone that is off: a day, so over night.
    public static let wakeLife = Duration.seconds(86_400)
    /// How old a trigger may be that a relay had stored (§5.1).
    public static let backlogGrace = Duration.seconds(300)
    /// The longest absence from a relay, an hour, that lets a trigger be so much older: later it would only
    /// disturb.
    public static let absence = Duration.seconds(3_600)
    /// How far ahead of our clock a stored trigger may be dated (§5.1).
    public static let clockSkew = Duration.seconds(300)
    /// How long a wake is owed, ten minutes: later it would only disturb.
    public static let custody = Duration.seconds(600)
}
