import PushModel

/// What is done to a relay's doors, one after the other (decision 0052).
package enum SiegeAttack: String, Sendable, CaseIterable {
    /// Nothing: what everything else is compared with.
    case quiet
    /// Bodies of the largest kind without credentials, begun and not ended.
    case bareBodies = "bodies_without_credentials"
    /// The same of one client, with credentials of the right form that nobody has.
    case bodies = "bodies_with_made_up_credentials"
    /// One client that takes connections.
    case connections = "connections_of_one_client"
    /// Clients that together take more connections than the process may have descriptors.
    case descriptors = "connections_of_a_crowd"
    /// One client that tries credentials.
    case failures = "failed_calls"
    /// One client that asks for transfers without end.
    case signUps = "sign_ups_and_transfers"
    /// A server that has the relay ask hosts that are not there.
    case challenges
    /// Clients that send whole bodies of several mebibytes with credentials that nobody has.
    case wholeBodies = "large_bodies_of_strangers"
    /// Servers that were let in, and upload realms that nobody knows.
    case realms = "realms_of_the_admitted"
    /// The same, and ask for pushes to ids that nobody has.
    case unknownIDs = "ids_that_nobody_has"
    /// The same, and register tokens that the push service refuses, and have them pushed to.
    case madeUpTokens = "tokens_that_are_none"

    /// For tables.
    var words: String { String(rawValue.map { $0 == "_" ? " " : $0 }) }
}

/// What a siege is made of.
package struct SiegePlan: Sendable {
    /// How long each attack lasts.
    package var seconds = 10.0
    /// Connections of the origin that asks beside it, each kept, with a pause between two calls.
    package var callers = 4
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String

    package init(executable: String, directory: String) {
        self.executable = executable
        self.directory = directory
    }

    /// After which a Zulip server gives a call up (zulip.md §5).
    static let patience = Duration.seconds(15)
    static let startSpan = Duration.seconds(60)
    static let stopSpan = Duration.seconds(40)
    /// Between an attack and the next, until its connections are gone.
    static let calm = Duration.milliseconds(500)
    /// The pace of each origin, as it is where nothing is set (docs/configuration.md).
    static let pushesPerMinute = 60_000
    /// Between two calls of one caller.
    static let pause = Duration.milliseconds(10)
    /// What the relay under siege may open, so that a crowd can reach it.
    static let openFiles = 1_024
    static let devices = 50
    /// Strangers with bodies, and what each sends of its sixteen mebibytes.
    static let bodySenders = 8
    static let bodyBytes = 14 << 20
    /// Strangers with whole bodies, and the bytes of each: what three of them sent cost 1.8 cores.
    static let wholeBodySenders = 3
    static let wholeBodyBytes = 6 << 20
    /// Servers that are let in and mean ill: as many origins as it takes to speak for a lane
    /// (decision 0048).
    static let guests = 3
    /// Realms of one upload, and ids of one call: the most that a call may name.
    static let realmsOfUpload = 1_000
    static let idsOfCall = 1_000
    static let crowd = 1_500
    /// Addresses that a crowd comes from, of 127.0.0.0/8.
    static let crowdAddresses = 50

    /// - Throws: `.badPlan`.
    func check() throws(BenchError) {
        guard seconds >= 0.1, seconds <= 3_600, (1...256).contains(callers) else {
            throw BenchError(.badPlan)
        }
    }
}
