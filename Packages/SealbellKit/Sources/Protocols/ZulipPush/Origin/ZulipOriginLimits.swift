/// Bounds of the origin alone, each with its clause or its reason.
public enum ZulipOriginLimits {
    /// An answer of the relay; a caller stops reading there. The largest that means something lists 1,000 ids
    /// of 20 digits.
    public static let answerBytes = 256 << 10
    /// Characters of `encrypted_push_registration` in a client's call (§14.4).
    public static let sealedRegistrationCharacters = 16_384
    /// Characters of `bouncer_public_key` in a client's call (§14.4).
    public static let bouncerKeyCharacters = 128
    /// Body of a client's call: the largest blob, percent-encoded, and the other fields.
    public static let formBodyBytes = 64 << 10
    /// Records of one user, and as many devices of v12, and as many notes (§14.4).
    public static let recordsPerUser = 100
    /// The first wait of a registration that is tried again, doubled each time, and the longest (§14.11).
    public static let firstRetry = Duration.seconds(30)
    /// The longest wait between two tries, an hour (§14.11).
    public static let longestRetry = Duration.seconds(3_600)
    /// What is added at most to a wait that the relay asked for (§14.11).
    public static let askedJitter = Duration.seconds(3_600)
    /// When a registration that nothing final was said of ends: of the account form §14.11 says seven days,
    /// of v12 and v11 §5.6 the age at which the relay refuses the blob.
    public static let zapRegistrationEnd = Duration.seconds(7 * 86_400)
    /// The end of a registration of v12 or v11: the age at which the relay refuses its blob (§5.6).
    public static let deployedRegistrationEnd = ZulipLimits.registrationAge
    /// How long the reason of a refusal stays in sight (§14.10).
    public static let noteLife = Duration.seconds(7 * 86_400)
    /// Event queues of one user: one for each device that they may have. With fewer their clients would chase
    /// each other out.
    public static let queuesPerUser = 100
    /// Events that nobody has read; a queue with more is closed. They are some hundred bytes each.
    public static let eventsPerQueue = 200
    /// How long a queue stays that nobody polls: ten minutes.
    public static let queueLife = Duration.seconds(600)
    /// After 25 seconds without an event a poll is answered by a heartbeat.
    public static let heartbeat = Duration.seconds(25)
    /// Pages of one run: a million ids are more than the relay keeps of a realm. What is left comes a day
    /// later.
    public static let stalePagesPerRun = 1_000
    /// From one run to the next, and what is added at most (§14.7).
    public static let staleInterval = Duration.seconds(86_400)
    /// At most an hour is added to ``staleInterval``, by chance (§14.7).
    public static let staleJitter = Duration.seconds(3_600)
    /// Behind a run that met no relay (§14.7).
    public static let staleRetry = (Duration.seconds(900), Duration.seconds(3_600))
    /// A same token told again sooner than this is no repeat, but a client that does not know that it was
    /// taken (docs/decisions/0116).
    public static let repeatInterval = Duration.seconds(86_400)
}
