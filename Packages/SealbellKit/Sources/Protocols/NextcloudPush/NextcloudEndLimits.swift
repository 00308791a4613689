/// Bounds of device and origin.
extension NextcloudLimits {
    /// Of a plaintext, before an ellipsis of six (§4.4). The deployed server takes the quotes of the subject
    /// off twice, so that two of them are never used.
    public static let plaintextBytes = 200
    /// Plaintext that a device reads: the longest that either padding takes has 245.
    public static let plaintextReadBytes = 256
    /// Ids of one withdrawal from a Talk device (§4.4).
    public static let withdrawnAtOnce = 10
    /// Characters of a proxy's URL (§4.1 step 4).
    public static let proxyURLBytes = 256
    /// Devices whose app password was not used for so long get nothing (§4.3).
    public static let appPasswordIdle = Duration.seconds(60 * 86_400)
    /// Room to write an entry into: the largest that we write has 1,180.
    public static let entryRoomBytes = 1_536
    /// Entries of one call that a store keeps in a row, readable and as they are sent: less than 2 MB of the
    /// 4 MiB that a row holds.
    public static let entriesPerRow = 512
    /// Entries that an origin sends in one call: 16 MB on the wire, as much as this relay takes.
    public static let entriesSentAtOnce = 13_000
    /// Answers that an origin or a device reads: a list of 13,000 unknown devices has 1.2 MB.
    public static let answerBytes = 4 << 20
    /// Entries that an origin keeps for one proxy, one call's worth, and for all of them: some 60 MB.
    public static let queuedPerProxy = 13_000
    /// Entries that an origin keeps for all proxies together: 52,000.
    public static let queuedEntries = 52_000
    /// Proxies (1,000) for which nothing waits and whose pause is still remembered: users name what they
    /// like.
    public static let pausedProxies = 1_000
    /// How long an entry is worth another try: a call rings for a minute (§4.7).
    public static let callLife = Duration.seconds(60)
    /// How long any other entry is worth another try: a day (§4.7).
    public static let entryLife = Duration.seconds(86_400)
    /// The first wait before another try, and the longest (§4.7).
    public static let backoffLeast = Duration.seconds(1)
    /// The longest wait before another try, five minutes (§4.7).
    public static let backoffMost = Duration.seconds(300)
    /// A device registers anew at this age, since servers and proxies may have forgotten it (§8).
    public static let registrationRepeat = Duration.seconds(86_400)
    /// A device's call without an answer for so long counts as lost: four times what an app waits.
    public static let callDeadline = Duration.seconds(120)
    /// A registration that takes no longer than five minutes is nothing to trouble a user with.
    public static let quietTime = Duration.seconds(300)
    /// How long an account that has left a phone is taken back, 30 days: a phone that finds no network for a
    /// month has other worries.
    public static let unregistrationLife = Duration.seconds(30 * 86_400)
    /// What a device reads back of what it has kept: a key of 1.7 KiB, a registration of 1.3 KiB, and after a
    /// logout a login of up to 2 KiB, four times over.
    public static let keptDeviceBytes = 16 << 10
    /// What an origin reads back of one user's devices.
    public static let keptBytes = 256 << 10
    /// Login name and app password of a device: three times what ``authorizationBytes`` is reckoned with.
    public static let loginBytes = 1_024
    /// What an app calls itself: ``userAgentBytes``, less ` (Strict VoIP)`.
    public static let ownUserAgentBytes = 498
    /// Ids of one call of `exists`, as deployed servers have it.
    public static let askedAtOnce = 200
    /// `Authorization`: a login name of 255 bytes and an app password of 72, in base64, four times over.
    public static let authorizationBytes = 2_048
    /// Devices of one user: deployed servers serve the 20 that were used last.
    public static let devicesPerUser = 100
    /// Notifications that are kept for one user, and the bytes of their texts.
    public static let keptNotifications = 1_000
    /// Bytes of all texts that are kept for one user, 512 KiB.
    public static let keptNotificationBytes = 512 << 10
    /// How long one is kept: an app password that nobody has used for so long gets no pushes either.
    public static let notificationLife = appPasswordIdle
    /// Notifications of one list, the newest first, as deployed servers have it.
    public static let listedNotifications = 25
    /// Longest texts of a notification: deployed servers have columns of 32 (app), 64 (type, id), 255
    /// (subject) and 4,000 characters.
    public static let appBytes = 32
    /// Longest type and id of a notification's object.
    public static let objectBytes = 64
    /// Longest subject of a notification: 255 characters of four bytes, and a little.
    public static let subjectBytes = 1_024
    /// Longest message, and longest link.
    public static let messageBytes = 4_000
    /// What is read back of one user: 100 devices of 1.2 KiB, each character escaped, and notes of 60 bytes.
    public static let userRecordBytes = 1 << 20
}
