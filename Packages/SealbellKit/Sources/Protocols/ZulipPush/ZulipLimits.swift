/// Every bound of this protocol, each with its clause or its reason. The clauses stand in
/// docs/conformance/zulip.md.
public enum ZulipLimits {
    /// Items of one notify call (§9). A real origin sends one user's devices at a time.
    public static let requestsPerCall = 1_000
    /// Tokens of each kind in one legacy notify call (§5.7): as many as the sealed call has items, and more
    /// phones than one user has.
    public static let legacyTokens = 1_000
    /// Body of a notify call: 1,000 items of the largest size that a push service takes.
    public static let notifyBodyBytes = 4 << 20
    /// Body of an analytics call: deployed servers upload up to 10,000 rows of each of three kinds at once,
    /// which percent-encoded are about 8 MiB.
    public static let analyticsBodyBytes = 16 << 20
    /// Body of any other call: the largest blob is about 6 KiB, three times that when percent-encoded.
    public static let formBodyBytes = 64 << 10
    /// Fields of one form: the largest known form has eight.
    public static let formFields = 64
    /// Nesting of any JSON text. What is read is 6 deep at most, but members to ignore may nest as they like;
    /// the reader recurses over them, about 200 bytes of stack for each.
    public static let jsonDepth = 128
    /// Characters of a device token (§4).
    public static let tokenCharacters = 4_096
    /// Bytes of a sealed registration: token of four-byte characters, app id, members to ignore, 48 bytes.
    public static let sealedRegistrationBytes = 24 << 10
    /// Bytes of an app id: APNs allows 64 in practice, its documentation names no bound.
    public static let appIDBytes = 255
    /// Body for APNs, and the data for FCM, of one push (§9; a VoIP push may have 5120).
    public static let payloadBytes = 4_096
    /// Characters of `encrypted_content` (§14.6): with the longest account id and the standard words the body
    /// for APNs stays below ``payloadBytes``.
    public static let sealedContentCharacters = 3_800
    /// Ids of one page of the stale list, and how long ago their devices must have expired (§14.7): longer
    /// than a registration stays fresh, and a week of missed runs.
    public static let staleIDsPerPage = 1_000
    /// How long a token is dead before its id is told, 14 days; the reason stands above.
    public static let staleAge = Duration.seconds(14 * 86_400)
    /// A registration older than this is refused (§5.4 step 6). Exactly this old passes.
    public static let registrationAge = Duration.seconds(86_400)
    /// A registration may be dated this far ahead (§10, liveness): a phone's clock may be a time zone off.
    public static let registrationSkew = Duration.seconds(86_400)
    /// How long the relay owes a push: a day.
    public static let custody = Duration.seconds(86_400)
    /// How long a reply waits for first attempts; the origin's own timeout is 15 s (§5).
    public static let replyDeadline = Duration.seconds(3)
    /// A registration that no client has repeated for so long goes. Clients repeat it every 30 days, when
    /// they are started; a phone that is never opened still wants its notifications for a year.
    public static let registrationLife = Duration.seconds(400 * 86_400)
    /// How long uses of the relay's keys are known, by day, and how long ago the last must be before one is
    /// retired without asking twice: clients repeat their registrations every 30 days.
    public static let keyUsesKept = Duration.seconds(42 * 86_400)
    /// Days without a use after which a key is nobody's.
    public static let keyUseDays: Int64 = 30
    /// Characters of `zulip_org_id` and `zulip_org_key` (§5.1).
    public static let organizationIDBytes = 36
    /// Characters of `zulip_org_key`.
    public static let organizationKeyBytes = 64
    /// Characters of a host name (§5.2).
    public static let hostnameBytes = 128
    /// Characters of a contact address: RFC 5321 §4.5.3.1.3.
    public static let mailBytes = 254
    /// Realms of one server, those that it reports no longer included: twenty times the largest known.
    public static let realmsPerServer = 5_000
    /// Realms that are reported no longer of which one upload looks whether they have devices: each costs a
    /// look-up, some 20 ms in all.
    public static let realmsLookedInto = 256
    /// Registrations of one realm, and of all realms of one server: the largest organisations have tens of
    /// thousands of users with two phones at most, and a server that hosts many of them some ten times that.
    public static let registrationsPerRealm = 100_000
    /// The same of all realms of one server.
    public static let registrationsPerServer = 500_000
    /// New registrations of a server after which the store is asked again how many there are: a walk over all
    /// of them, half a second for the largest. With several relays each may add as many in between.
    public static let newRegistrationsPerCount = 1_000
    /// What they take in the store, sealed: 640 bytes each, where one has 300 to 500.
    public static let registrationBytesPerRealm = 64_000_000
    /// The same of all realms of one server, in bytes.
    public static let registrationBytesPerServer = 320_000_000
    /// Servers of one host name, each at a port of its own, where the policy lets several have it: a machine
    /// with test servers. A sign-up looks at all of them.
    public static let hostsPerName = 16
    /// An invitation admits one sign-up of a host within so long (docs/configuration.md).
    public static let invitationLife = Duration.seconds(7 * 86_400)
    /// How long a rotated key stays good where the new one is not used (§5.2): the deployed `--rotate-key`
    /// uploads once more with the old key before it writes the new one down.
    public static let oldKeyLife = Duration.seconds(600)
    /// A transfer must be finished within ten minutes.
    public static let challengeLife = Duration.seconds(600)
    /// What a host may answer to the verification request, and how long it may take.
    public static let challengeAnswerBytes = 4_096
    /// How long the host has to answer: five seconds.
    public static let challengeDeadline = Duration.seconds(5)
    /// Characters of a transfer's access token.
    public static let accessTokenBytes = 128
    /// Number of unknown parameters that an answer lists at most: 16.
    public static let ignoredParametersListed = 16
    /// Ids of one `remove` notification (§7).
    public static let removedMessages = 200
    /// Characters of a message's text before it is cut (§7).
    public static let contentCharacters = 200
    /// Plaintext of a notification that a device reads: what fits a push, with room.
    public static let contentBytes = 16 << 10
    /// A push key is replaced at this age, and an older key is superseded when a newer one is that old (§8).
    public static let pushKeyLife = Duration.seconds(30 * 86_400)
    /// Age of a new key at which the former one is superseded (§8).
    public static let pushKeyOverlap = Duration.seconds(15 * 86_400)
    /// A superseded key stays so long: FCM may hold a message 28 days, APNs 30 (§8).
    public static let pushKeyAfterlife = Duration.seconds(30 * 86_400)
    /// A device repeats its registration at this age (§8).
    public static let registrationRepeat = Duration.seconds(30 * 86_400)
}
