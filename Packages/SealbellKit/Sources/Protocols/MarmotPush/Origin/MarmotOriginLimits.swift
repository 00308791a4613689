// Bounds of waking others.
extension MarmotLimits {
    // MARK: what is remembered

    /// A relay list is looked up again after a day (docs/conformance/marmot.md).
    package static let listLife = Duration.seconds(86_400)
    /// How long it holds that relays have no list for a key.
    package static let absentLife = Duration.seconds(300)
    /// The same for a key for which no relay answered, and for a list without a usable relay.
    package static let doubtLife = Duration.seconds(60)
    /// A relay's document, and the knowledge that it has none.
    package static let documentLife = Duration.seconds(86_400)
    package static let noDocumentLife = Duration.seconds(3_600)
    /// Servers of which something is remembered: an app's own, and those of the other builds in its groups.
    package static let rememberedServers = 64
    package static let rememberedDocuments = 256
    /// One list; nobody who wants to be found has a longer one.
    package static let keptListBytes = 16 << 10
    /// What a sender keeps: 64 lists of 16 KiB, and what JSON escapes of them.
    public static let keptListsBytes = 2 << 20
    /// Events that are looked at when a list is asked for.
    package static let listsRead = 64

    // MARK: one wake

    /// An answer that an app has not brought by then is lost: 120 s, four times the patience of a call.
    public static let callLife = Duration.seconds(120)
    /// Wakes that are under way: an app has one for each message that it sends.
    public static let openWakes = 256
    /// Tokens of one wake: groups have about 200 (spec, "Implementation Considerations"), and nobody lists
    /// more than so many to others.
    public static let tokensOfWake = listedTokens
    /// Their bytes, with relay hints, 2 MiB: a thousand padded tokens with hints of the full length take 1.6.
    /// The triggers made of them, which are held until relays have answered, are three to four times as long.
    public static let tokenBytesOfWake = 2 << 20
    /// The same of all wakes that are under way, 16 MiB: eight of the greatest, or seventy of a group of 200
    /// phones with padded tokens. Their triggers are some 64 MiB, where those of 256 were up to 2 GiB.
    public static let openWakesBytes = 16 << 20
    /// Servers that are served at once. Those with built-in relays come first, then those with the most
    /// phones, so that a member who invents servers does not delay real ones.
    package static let serversAtOnce = 8
    /// Servers of one wake; the rest are reported as not reached.
    package static let serversOfWake = 32
    /// Triggers of one server that are on their way at once: each is a connection to each of its relays.
    package static let triggersAtOnce = 4
    /// Relays of one server whose documents are asked for: a list has sixteen, and hints as many.
    package static let documentsOfServer = 32
    /// A relay's document is waited for so long.
    package static let documentPatience = Duration.seconds(5)
    /// The least pause before a trigger that nobody took is published once more; as much again at random.
    package static let secondTryPause = Duration.seconds(2)
}
