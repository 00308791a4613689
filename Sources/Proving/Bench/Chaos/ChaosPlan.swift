/// What a chaos trial does.
package struct ChaosPlan: Sendable {
    /// A machine whose power fails: what was not synced is forgotten at each kill.
    package struct PowerCuts: Sendable {
        /// The preloaded library, `scripts/powercut/forget.c`.
        package var shim: String
        /// The program that puts the disk's image in place, `scripts/powercut/cut`.
        package var cut: String
        /// Share of writes, in percent, that reach the disk early and out of order.
        package var earlyPercent: Int

        package init(shim: String, cut: String, earlyPercent: Int) {
            self.shim = shim
            self.cut = cut
            self.earlyPercent = earlyPercent
        }
    }

    /// A trace of system calls in place of kills, for `scripts/powercut/trace.py`.
    package struct Trace: Sendable {
        /// Where strace writes.
        package var file: String
        /// Where the answered requests and their push ids are written, one JSON object a line.
        package var ledger: String
        package var requests: Int

        package init(file: String, ledger: String, requests: Int) {
            self.file = file
            self.ledger = ledger
            self.requests = requests
        }
    }

    /// A server of PostgreSQL stands on the relay's machine. A kill is the relay's alone; a power cut takes
    /// both.
    package var store = TrialStore.sqlite
    package var kills = 200
    package var seed: UInt64
    /// Callers that ask at the same time.
    package var workers = 8
    /// At Apple, and half as many at Google: together as many as a relay of any protocol lets one address
    /// register for the first time within a minute.
    package var devices = 80
    /// Pushes in one request: 1 to this many.
    package var mostItems = 10
    package var powerCuts: PowerCuts?
    package var trace: Trace?
    /// Forces `synchronous=NORMAL` (PostgreSQL: `synchronous_commit=off`), to show that the trial can fail.
    package var withoutSync = false
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String

    package init(executable: String, directory: String, seed: UInt64) {
        self.executable = executable
        self.directory = directory
        self.seed = seed
    }

    /// The place of the protocol that a caller asks in: every fourth caller's is behind the first.
    static func place(ofCaller number: Int, among protocols: Int) -> Int {
        guard protocols > 1, number % 4 == 3 else { return 0 }
        return 1 + number / 4 % (protocols - 1)
    }

    /// What goes beside the load, for the help.
    package static var companions: String {
        BenchProtocols.standard.companions.map { $0.discussion }.joined(separator: " ")
    }

    /// From the last kill on, so long for everything owed to arrive: several steps of the back-off.
    static let drainSpan = Duration.seconds(120)
    static let answerSpan = Duration.seconds(20)
    /// From the end of the trial on, so long for the last request of each caller to be acknowledged: a relay
    /// that never gets there has failed, and its answers are in the report.
    static let lastAnswerSpan = Duration.seconds(120)

    var manners: TrialCaller.Manners {
        .init(
            mostItems: mostItems, answerSpan: Self.answerSpan, patience: Self.lastAnswerSpan,
            waitsForTheEnd: true, rest: 50)
    }
}
