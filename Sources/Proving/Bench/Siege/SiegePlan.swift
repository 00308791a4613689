import PushModel

/// What a siege is made of.
package struct SiegePlan: Sendable {
    /// How long each attack lasts.
    package var seconds = 10.0
    /// Connections of the origin that asks beside it, each kept, with a pause between two calls.
    package var callers = 4
    /// The attacks that are made, by their names; empty: all.
    package var attacks: [String] = []
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String

    package init(executable: String, directory: String) {
        self.executable = executable
        self.directory = directory
    }

    /// After which a server gives a call up (docs/conformance/zulip.md).
    static let patience = Duration.seconds(15)
    static let stopSpan = Duration.seconds(40)
    /// Between an attack and the next, until its connections are gone.
    static let calm = Duration.milliseconds(500)
    /// The pace of each origin, as it is where nothing is set (docs/configuration.md).
    static let pushesPerMinute = 60_000
    /// Between two calls of one caller.
    static let pause = Duration.milliseconds(10)
    /// What the relay under siege may open, so that a crowd can reach it.
    static let openFiles = 1_024
    /// Of each push service.
    static let devices = 50
    /// In which all that the origin's calls asked for must have arrived, once an attack is over.
    static let arrival = Duration.seconds(5)
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
    /// Boxes that do not open: more than the first registrations of all clients in a minute, and those that
    /// follow in a second.
    static let junkBoxes = 1_500
    static let junkBoxesPerSecond = 20
    static let junkBytes = 500
    /// Key pairs that cost nothing, all for one phone, and clients that have pushes made with them.
    static let freeKeys = 300
    static let freeKeyCallers = 2
    /// First registrations from one address: the relay that takes fewest takes 120 a minute (docs/limits.md).
    static let registrations = 100
    /// Between two calls that one user gets.
    static let ringPause = Duration.milliseconds(200)
    /// Bodies that stand still, and the length that each has announced; a byte of each is never sent.
    static let standingBodies = 3
    static let standingBytes = 16 << 20
    /// After which a body stands still (docs/limits.md), and a second more.
    static let standingSpan = Duration.seconds(3)
    /// Entries of a call that is a large body: some 370 kB, more than standing bodies leave.
    static let largeCall = 300
    /// Servers that make such calls, each at an address of its own, and the pause between two: a client may
    /// make 6,000 a minute, of which a large one counts for each 20 KiB.
    static let servers = 4
    static let largeCallPause = Duration.milliseconds(500)
    /// Members of the largest group there is, and phones of the one who means ill.
    static let members = 100
    /// Addresses that a crowd comes from, of 127.0.0.0/8.
    static let crowdAddresses = 50

    /// - Throws: `.badPlan`.
    func check() throws(BenchError) {
        guard seconds >= 0.1, seconds <= 3_600, (1...256).contains(callers) else {
            throw BenchError(.badPlan)
        }
    }

    /// Those that are to be made.
    ///
    /// - Throws: `.badPlan` where one is named that is none.
    func chosen(of all: [SiegeAttack]) throws(BenchError) -> [SiegeAttack] {
        guard !attacks.isEmpty else { return all }
        guard Set(attacks).isSubset(of: all.map(\.name)) else { throw BenchError(.badPlan) }
        return all.filter { attacks.contains($0.name) }
    }

    /// As much of a number as there is time for: all of it from six seconds on.
    func scaled(_ number: Int) -> Int { max(1, min(number, Int(Double(number) * seconds / 6))) }
}
