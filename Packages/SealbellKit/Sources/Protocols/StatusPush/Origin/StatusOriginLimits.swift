/// Bounds of the sending client.
extension StatusLimits {
    /// Content of a preview: with its frame, padding and seal the push stays below the 4 KiB of push
    /// services, where it stands twice as hex.
    static let previewBytes = 400
    /// Fewest installations that a message for all of them goes to (RFC 59, "Sending a push notification").
    public static let leastInstallations = 3
    /// Most of them, whatever is asked for: 32.
    public static let mostInstallations = 32
    /// People (2,000) about whom something is remembered: contacts, and members of groups.
    public static let originTargets = 2_000
    /// Servers and installations of one of them.
    public static let targetCoordinates = 64
    /// Notifications for one person each that are not yet settled.
    public static let originJobs = 1_000
    /// Queries, and requests, whose answers are awaited: 256. More wait for room: what is late makes way.
    public static let originCalls = 256
    /// One server answers at once or not at all: the specification names this wait.
    public static let answerWait = Duration.seconds(3)
    /// How long history of a contact code may take, five seconds, before the servers are asked instead.
    public static let historyWait = Duration.seconds(5)
    /// A late answer still counts for so long.
    public static let lateAnswer = Duration.seconds(60)
    /// One person is asked about once in so long (§12), unless a server said that a token is wrong.
    public static let queryPeriod = Duration.seconds(24 * 3_600)
    /// The pause after the nth attempt is n · 2^n times this (§12), and attempts are four at most.
    public static let requestPause = Duration.seconds(2)
    /// Attempts of one notification: 4 (§12).
    public static let requestAttempts = 4
    /// Notifications in one request: the relay's own bound is not below it.
    public static let notificationsAtOnce = 50
    /// Entries of an allowed key list that are tried: as many as a message carries. An agreement of keys is
    /// made once for all.
    public static let triedKeys = 2_400
    /// What an origin reads back of what it has kept: 2,000 people with a few installations each.
    public static let originRowBytes = 8 << 20
    /// What it keeps of people: of the above, without the head.
    static let originPeopleBytes = originRowBytes - 1_024
    /// Messages of which the node has not yet said whether it has published them: all queries and requests.
    /// Of an app that never says it the oldest are forgotten.
    static let originUnderWay = 2 * originCalls
    /// Earlier `follow` calls whose messages still count: a node hands over what it has while a new one is on
    /// its way.
    static let formerFollows = 8
}
