/// What a trial of restarts does.
package struct RestartPlan: Sendable {
    package var restarts = 200
    package var seed: UInt64
    /// Callers that keep their connection, and callers that make a new one for each call.
    package var kept = 8
    package var fresh = 8
    package var devices = 100
    /// False shows that the trial can fail: each relay takes its address itself.
    package var handsSocketOver = true
    package var executable: String
    /// An empty directory of the trial's own.
    package var directory: String

    package init(executable: String, directory: String, seed: UInt64) {
        self.executable = executable
        self.directory = directory
        self.seed = seed
    }

    /// After which a server gives a call up (docs/conformance/zulip.md).
    static let patience = Duration.seconds(15)
    /// A stop drains for 15 s at most, and what is under way to a push service for 12 s.
    static let stopSpan = Duration.seconds(40)
    static let drainSpan = Duration.seconds(60)
    /// Pushes in one call: 1 to this many.
    static let mostItems = 3
    /// Between two calls of one caller, in milliseconds. Every fourth caller that keeps its connection is
    /// quiet for longer, so that some have nothing to ask when the relay stops.
    static let mostPause = 40
    static let mostQuiet = 900
}
