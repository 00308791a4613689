import PushModel

/// Bounds of the device's routine (§14.12), each with its clause or its reason.
extension ZulipLimits {
    /// How long it is normal that a registration is pending, after the login or an acknowledged call: five
    /// minutes.
    public static let registrationGrace = Duration.seconds(300)
    /// Waits after a call that found nobody: the n-th is drawn from half of d to d, d doubled n − 1 times.
    static let callRetry = DrawnWait(least: .seconds(5), most: .seconds(900))
    /// Waits of a device that listens, after a question for state or events that brought nothing: somebody is
    /// there to hear, and the server may be back within the minute.
    static let eventsRetry = DrawnWait(least: .seconds(1), most: .seconds(60))
    /// Waits after the server has dropped a registration more than once without having had it active.
    static let lossRetry = DrawnWait(least: .seconds(60), most: .seconds(86_400))
    /// No wait is longer: a day that a server asks for, and half of it.
    static let longestWait = Duration.seconds(86_400 * 3 / 2)
    /// A call that the server refuses is made again at a start of the app, not within a day.
    static let refusalLife = Duration.seconds(86_400)
    /// A call whose answer the app has not brought after two minutes was lost, with the app: its own deadline
    /// is shorter.
    public static let callLife = Duration.seconds(120)
    /// Former ids open what arrives for so long: FCM may hold a message 28 days, APNs 30.
    public static let formerLife = Duration.seconds(30 * 86_400)
    /// Former ids of one account: a token changes a few times in a year.
    static let formerRegistrations = 32
    /// A sealed registration is good for a day; what is pending for longer than that and an hour never ends,
    /// where the server says nothing of it.
    static let stuckAfter = Duration.seconds(86_400 + 3_600)
    /// Counted failures: more of them make no wait longer.
    static let countedFailures = 32
    /// Body of `server_settings`: a few KB, and more with many ways to log in.
    public static let settingsBytes = 1 << 20
    /// Body of `POST register`: the state of a large organisation is some tens of MB.
    public static let stateBytes = 256 << 20
    /// Body of an answer to a call of this protocol, and of one `GET events`.
    static let callAnswerBytes = 64 << 10
    /// Body of one `GET events`, in bytes.
    public static let eventsBytes = 64 << 20
    /// Events about one phone in one answer.
    static let ownEvents = 1_000
    /// Characters of a server's error code.
    static let errorCodeBytes = 64
    /// What a push service hands to an app: 4 KB, and as much again where it is a text within JSON.
    public static let deliveredBytes = 16 << 10
    /// What an app keeps of one account: tokens of 4 KB, escaped, and 32 former ids.
    public static let keptBytes = 256 << 10
    /// Push keys of one account: one a month, each gone after some months.
    static let heldKeys = 64
    /// The app's marker.
    static let markerBytes = 16...64
    /// A user's API key; a server's have 32 characters.
    static let apiKeyBytes = 1...1_024
    /// Characters of a server's URL.
    static let serverURLBytes = 2_048
    /// Characters of an event queue's id; a server's have 36.
    static let queueIDBytes = 256
    /// Body of an answer to `POST register` and `GET events` about registrations alone, and what a realm's
    /// settings add to it.
    static let queueAnswerBytes = 8 << 20
    /// Questions for events while one registration is awaited: one in less than a second, for five minutes.
    static let polls = 500
    /// Event queues that are to be closed.
    static let closingQueues = 8
    /// What is pending for longer than anybody waits is looked at again then.
    static let laterLook = Duration.seconds(3_600)
    /// Registrations that a server is still to forget: former ones and the current one.
    static let forgets = formerRegistrations + 2
    /// Calls whose answers are awaited.
    static let callsUnderWay = 64
}

/// Waits that double: the n-th is drawn evenly from half of d to d.
struct DrawnWait: Sendable {
    let least: Duration
    let most: Duration

    /// - Parameter count: from 1.
    func draw(_ count: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        let doublings = Int64(min(max(count - 1, 0), ZulipLimits.countedFailures))
        let whole = min(most.wholeMilliseconds, least.wholeMilliseconds << doublings)
        return .milliseconds(Int64.random(in: whole / 2...whole, using: &generator))
    }
}
