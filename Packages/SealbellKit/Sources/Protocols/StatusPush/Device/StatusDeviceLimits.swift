/// Bounds of the registering client.
extension StatusLimits {
    /// Servers of one account: deployed clients pick three of a list.
    public static let deviceServers = 8
    /// Attempts to bring one server to one version, as deployed clients count them (§11).
    public static let registrationAttempts = 12
    /// The pause after the nth attempt is n · 2^n times this (§11).
    public static let registrationPause = Duration.seconds(15)
    /// How often in a row a server may say that it holds a higher version. The version grows twice as much
    /// each time, so that 16 of them overtake 65,535 lost changes, and a server that always says so cannot
    /// drive the number on.
    public static let versionMismatches = 16
    /// The highest version: deployed servers keep it as a signed number of 64 bits.
    public static let highestVersion = UInt64(Int64.max)
    /// How often an advertisement is repeated when nothing has changed. Waku nodes keep history for weeks,
    /// and a sending client asks servers for one user once a day at most.
    public static let advertisementPeriod = Duration.seconds(24 * 3_600)
    /// Other installations of the same account, 16, whose servers are advertised too.
    public static let otherInstallations = 16
    /// How long an installation is advertised by others after its own last advertisement: 30 days.
    public static let otherInstallationLife = Duration.seconds(30 * 86_400)
    /// How many bytes are kept of what they advertise: with contacts only, each has a list of them for each
    /// of its servers. Half of what is kept of an account has room for it in hexadecimal; one that does not
    /// fit is advertised by itself alone.
    static let otherInstallationBytes = 192 << 10
    /// Entries of all lists of a registration together: each takes 66 bytes, and the registration, with a
    /// token of 4,096, has to stay below the 150 KiB that Waku nodes pass on. Contacts count where they
    /// alone may send.
    public static let deviceEntries = 2_000
    /// Contacts that may be listed: 1,500.
    public static let deviceContacts = 1_500
    /// Chats and people in one list of a registration: 64 bytes each.
    public static let deviceChats = 300
    /// A device token of FCM's, as long as relays take one; of APNs' they take 200 characters.
    public static let deviceTokenText = deviceTokenBytes
    /// What a device reads back of what it has kept: its lists are digests of 32 digits.
    public static let deviceRowBytes = 1 << 20
    /// Calls that a device waits for: two rounds of servers and contact code. Of an app that answers none the
    /// oldest are forgotten, and made again when their time has come.
    static let deviceCalls = 64
    /// How long an app need not speak of a registration that is under way.
    static let quietTime = Duration.seconds(300)
    /// Messages that a phone remembers, 512, to tell a repeat.
    public static let rememberedMessages = 512
    /// Accounts of one phone.
    public static let deviceAccounts = 16
    /// Chats that are looked through for the one that a push names.
    public static let knownChats = 5_000
}
