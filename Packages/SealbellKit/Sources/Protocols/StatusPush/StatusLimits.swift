/// Every bound of this protocol, each with its reason. The clauses stand in docs/conformance/status.md.
public enum StatusLimits {
    /// A hash of a key, a chat or an author: SHAKE-256 with this many bytes of output.
    public static let hashBytes = 64
    /// A signature with the parity that lets its key be recovered.
    public static let signatureBytes = 65
    /// In front of a box, and behind a symmetric payload.
    public static let nonceBytes = 12
    /// The authenticator behind a box (AES-GCM).
    public static let tagBytes = 16
    /// A topic key, an AES key, an X coordinate.
    public static let keyBytes = 32

    /// A message as nodes relay it at most, its envelope among it: logos-delivery and go-waku have the same
    /// bound where they are not told otherwise.
    package static let carriedBytes = 150 << 10
    /// Data of one payload of ours: signature, seal, padding and envelope around it take less than the rest.
    package static let carriedData = carriedBytes - (1 << 10)
    /// One response, as protobuf; more is several. Less than ``carriedData``, so that a network whose nodes
    /// were told a somewhat lower bound hears it too.
    package static let responseBytes = 128 << 10
    /// All responses to one query: eight phones, each of whose lists has as many contacts as a message
    /// carries.
    package static let answerBytes = 1 << 20
    /// A payload: what a Waku node relays at most (1 MiB with the envelope around it).
    package static let payloadBytes = 1 << 20
    /// Fields of one message, those that are passed over among them: a payload full of hashes has fewer.
    package static let fields = 16_384
    /// Fields of a message that has few by its definition; room for what later versions add.
    package static let fewFields = 64
    /// Rounds of a topic's key (WAKU2-PAYLOAD as deployed; the number is theirs, not a round one).
    package static let topicKeyRounds = 65_356
    /// Topics over which keys are spread.
    package static let partitions = 5_000
    /// Bodies of payloads are padded to a multiple of this.
    package static let paddingBytes = 256

    /// An access token in the longest spelling that a UUID has: `urn:uuid:` in front.
    package static let tokenTextBytes = 45
    /// A device token of Apple's: 32 bytes today, in hexadecimal. Apple asks to expect others; more than this
    /// its clients here would not send.
    package static let appleTokenBytes = 200
    /// A device token: Google names no bound; none has been seen above a few hundred characters.
    package static let deviceTokenBytes = 4_096
    /// An installation id: a UUID in practice; the text asks only that it is not empty.
    package static let installationBytes = 256
    /// An APNs topic, as long as a bundle id may be with a suffix behind it.
    package static let apnTopicBytes = 256
    /// Hashes of one query that are looked up; repeated ones count once. Clients ask for one person at a
    /// time.
    package static let queriedKeys = 64
    /// Notifications of one request: one for each installation of a group's members on this server. A message
    /// carries some 600 of deployed senders'; what has more is no request.
    package static let notifications = 1_000
    /// The id of a chat's message, which each response repeats: deployed senders' have 32 bytes.
    package static let messageIDBytes = 1_024
    /// Fields of a query and of a request: their elements, and room for what later versions add.
    package static let queryFields = 4_096
    package static let requestFields = notifications + fewFields
    /// Installations of one key that a query tells, those that registered last: nobody has so many devices,
    /// but each installation of an app has an id of its own.
    package static let installations = 64
    /// Rows that are read of one key: registrations that have ended are rows for six weeks.
    package static let rowsOfPerson = 1_024
    /// Rows of registrations that are read at once. Each may have as many bytes as a message carries.
    package static let rowsAtOnce = 16
    /// Bytes of rows that are read for one query: four times of what it can be answered with, because
    /// registrations that are not told, and lists that are not, are read as well.
    package static let readBytes = 4 << 20
    /// Names of a request that are looked up at once.
    package static let namesAtOnce = 32
    /// Calls that read registrations at one time: with as many bytes in each row as there can be, in rows and
    /// in messages made of them, some 160 MB. Others wait, at a few milliseconds each.
    package static let readers = 16

    /// Followed topics with the same four bytes that are looked at, and at once. Chance gives two at a time;
    /// each further one costs somebody four billion keys, and as many again when the other person renews.
    package static let sharedTopics = 16_384
    package static let sharedTopicsAtOnce = 256
    /// Bytes that are tried for one message, its own once for each key: a query, which is short, with all
    /// keys of its topic, and what is as long as a message can be with a hundred.
    package static let triedBytes = 16 << 20
    /// Notifications in one call of a gateway: what gorush takes as it stands (`max_notification`).
    package static let gatewayPushes = 100

    /// How long a request is remembered, and an end of what was never registered here: as long as nodes keep
    /// messages, and so may hand them out again.
    package static let requestMemory = Duration.seconds(30 * 86_400)
    /// How long a request of which something failed may come again, counted from when it first came: a minute
    /// less than the store knows again what was sent of it (``Push/repeatIdentity``).
    package static let failedMemory = Duration.seconds(540)
    /// Until when a request is answered: clients look for another server after three seconds.
    package static let reportWithin = Duration.seconds(2)
    /// How long the relay owes a push: what is older, a phone that was off fetches by itself.
    package static let custody = Duration.seconds(14 * 86_400)
    /// What an APNs push may have, all of it, and the data of one through FCM (docs/push-services.md §2.4).
    package static let pushBytes = 4_096
}
