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
    /// Between two calls of one caller.
    static let pause = Duration.milliseconds(10)
    /// What the relay under siege may open, so that a crowd can reach it.
    static let openFiles = 1_024
    static let devices = 50
    /// Strangers with bodies, and what each sends of its sixteen mebibytes.
    static let bodySenders = 8
    static let bodyBytes = 14 << 20
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
