/// Every bound of this protocol, each with its reason. The clauses stand in docs/conformance/nextcloud.md.
public enum NextcloudLimits {
    /// Body of a notifications call: about 13,000 entries as deployed servers write them. A batch that is
    /// refused is lost whole, and deployed servers know no bound.
    public static let notifyBodyBytes = 16 << 20
    /// Entries of one call: half as many again as the body holds of real ones. An entry that is smaller than
    /// a real one must be malformed.
    public static let entriesPerCall = 20_000
    /// Text of one entry: a real one has 1.0 KiB, and may have members to ignore.
    public static let entryBytes = 16 << 10
    /// Characters of a `User-Agent` that are looked at, in the head or in the form: real ones have 60.
    public static let userAgentBytes = 512
    /// Body of a devices call: five values of at most 4 KiB, percent-encoded, and fields to ignore.
    public static let deviceBodyBytes = 64 << 10
    /// Query string of a devices call: a listener takes no more in a request's head.
    public static let queryBytes = 16 << 10
    /// Fields of a devices call, 64: the largest known form has six.
    public static let formFields = 64
    /// Nesting of JSON: what is read is 2 deep, but members to ignore may nest; the reader recurses
    /// over them.
    public static let jsonDepth = 64
    /// Characters of `pushToken` (§5.2 step 1).
    public static let tokenBytes = 4_096
    /// Characters of an APNs token: 64 so far, and Apple says that it may grow.
    public static let apnsTokenDigits = 200
    /// Characters of a key's text: 451 as deployed servers write it; a line end after each character more
    /// than doubles nothing that is real.
    public static let keyTextBytes = 1_024
    /// Characters of `cloudId`: a user id has 64 at most, a server's address 256.
    public static let cloudIDBytes = 512
    /// Segments before the endpoint in a path: one, which names the app.
    public static let prefixSegments = 1
    /// Bytes of that segment.
    public static let prefixBytes = 64
    /// A device identifier: SHA-512.
    public static let identifierBytes = 64
    /// A ciphertext, and a signature: RSA-2048.
    public static let blockBytes = 256
    /// Their base64.
    public static let blockCharacters = 344
    /// How long push services keep an alert for a phone that is off (§5.7, a day to four weeks).
    public static let alertTTL = Duration.seconds(7 * 86_400)
    /// The same of a withdrawal (§5.7).
    public static let withdrawalTTL = Duration.seconds(86_400)
    /// How long the relay owes an alert or a withdrawal: a day.
    public static let custody = Duration.seconds(86_400)
    /// How long it owes a call: no phone rings longer (§5.7, 30 to 60 s).
    public static let callCustody = Duration.seconds(60)
    /// A registration that no client has repeated for 400 days goes. Clients repeat it whenever they are
    /// started; a phone that is never opened still wants its notifications for a year.
    public static let registrationLife = Duration.seconds(400 * 86_400)
    /// The pin stays 500 days, longer than the tokens that it speaks for, so that their end can still be
    /// told.
    public static let pinLife = Duration.seconds(500 * 86_400)
    /// How often a registration or removal is judged that others overtake: one device has ten of them a
    /// minute (`NextcloudAllowances.ofDevice`), at each of a few relays on one store.
    public static let registrationRounds = 32
    /// From its first sight on a hash that differs says nothing for so long: the server knows a new token
    /// before the relay does (§5.5 step 3).
    public static let tokenChange = Duration.seconds(600)
    /// Identifiers of which such a first sight is remembered, some 250 bytes each: more phones than change
    /// their token within ten minutes. Of the oldest one that is forgotten the ten minutes begin anew.
    public static let hashSights = 32_768
    /// App passwords of an instance of which a proof tries the numbers: half a second of one core at most. A
    /// device with a higher one cannot prove its identifier; it gets another when its account is added anew.
    public static let appPasswords = 1 << 20
    /// Identifiers without any row that one answer lists as `unknown`: more than a real call has of devices
    /// that were never registered here, and few enough that the loss of a store does not wipe a server's
    /// registrations at once.
    public static let unknownPerAnswer = 10
    /// The same of all answers to one client within an hour.
    public static let unknownPerHour = 600
    /// Identifiers of which it is remembered that they were told to a client, so that they are told again at
    /// no cost: servers that do not act on it name them with every push. Some 40 bytes each.
    public static let toldIdentifiers = 65_536
    /// What an instance may answer to an identity proof, and how long it may take (§5.3).
    public static let proofAnswerBytes = 64 << 10
    /// How long an instance may take to answer an identity proof (§5.3).
    public static let proofDeadline = Duration.seconds(5)
    /// Words of instances that are remembered, some 400 bytes each: seven minutes of all requests that there
    /// may be.
    public static let instanceWords = 4_096
    /// How long a word stands for the key that it names, a minute: as long as a user's share takes to fill
    /// again, so that whoever has used it up gets the word.
    public static let wordLife = Duration.seconds(60)
    /// The same for another key, or of an instance that gave none: it may be another one in a moment.
    public static let refusalLife = Duration.seconds(10)
    /// Calls that wait for one word: more than one user's devices.
    public static let waitingForWord = 64
    /// A call of a larger body, about 16 entries, is read and judged away from the event loops: so many
    /// verifications take 0.5 ms.
    public static let bytesOnLoop = 20 << 10
    /// Records that one look-up of a batch asks for: as many as the largest call of another protocol.
    public static let namesPerFind = 1_000
    /// Entries of a step of such a batch, 256, after which others get their turn.
    public static let entriesPerStep = 256
    /// Pinned keys that are kept parsed, about 2 KiB each: more than a second of verifications uses.
    public static let parsedKeys = 8_192
}
