/// Bounds of the device.
extension SessionLimits {
    /// Elements of one array: as many as the largest deployed client sends at once (§3.4).
    public static let elementsAtOnce = 100
    /// Accounts of one phone: a user, and the groups that the user is in.
    public static let watchedAccounts = 2_000
    /// Subscriptions that have ended here and are still to be taken back. The oldest is given up: it ends by
    /// itself when its signature is 14 days old.
    public static let unsubscriptions = 200
    /// How long one of them is tried: its signature holds for 24 h (§3.3), and its key may be gone from the
    /// phone, so that it cannot be signed again. An hour is left for clocks that differ.
    public static let unsubscriptionLife = Duration.seconds(23 * 3_600)
    /// A subscription is renewed at a random time between these two: no sooner than deployed clients do it,
    /// and twice before its signature is 14 days old (§3.4).
    public static let renewalLeast = Duration.seconds(12 * 3_600)
    /// Seven days; see ``renewalLeast``.
    public static let renewalMost = Duration.seconds(7 * 86_400)
    /// A first subscription that takes no longer than five minutes is nothing to trouble a user with.
    public static let quietTime = Duration.seconds(300)
    /// The first wait after a failure, and the longest: four of them are those of a deployed client (§3.4).
    public static let backoffLeast = Duration.seconds(15)
    /// An hour; see ``backoffLeast``.
    public static let backoffMost = Duration.seconds(3_600)
    /// A call without an answer for so long counts as lost: storage servers give the server 25 s (§7.4).
    public static let callDeadline = Duration.seconds(300)
    /// An answer to a call: a hundred elements with a message of 1 KiB each.
    public static let answerBytes = 128 << 10
    /// What a device reads back of what it has kept: 2,000 accounts of some 1.2 KiB, 200 unsubscriptions
    /// of 2 KiB, and the memory of repeats.
    public static let keptBytes = 4 << 20
    /// Text of a message's hash: 43 characters in practice.
    public static let messageHashBytes = 255
    /// Messages that a device remembers, to tell a repeat: those of two weeks on a busy phone, 10 KiB.
    public static let rememberedMessages = 512
    /// Nodes of a path: storage servers refuse more (§7.4).
    public static let pathNodes = 15
    /// Host name or address of a server in routing JSON.
    public static let hostBytes = 253
}
