package import PushModel

/// A way out for notices beside log and gauge: a webhook or a mail command.
package protocol AlertSink: Sendable {
    /// For the log: `webhook`, `mail`.
    var way: NoteCode { get }
    /// Tells one notice; bounded by a deadline of its own.
    func tell(_ notice: AlertNotice) async -> AlertDelivery
}

/// What became of one attempt to tell a notice.
package enum AlertDelivery: Sendable, Hashable {
    case told
    /// Somebody answered, and it was no success: an HTTP status, or the exit status of a command.
    case refused(status: Int)
    /// Nobody answered, by this code of docs/errors.md or of a command's.
    case failed(ErrorCode)
}

/// Which ways alerts go.
package struct AlertWays: Sendable {
    package var log = true
    package var gauge = true
    package var sinks: [any AlertSink] = []

    package init(log: Bool = true, gauge: Bool = true, sinks: [any AlertSink] = []) {
        self.log = log
        self.gauge = gauge
        self.sinks = sinks
    }
}

/// Where raised alerts stand over the end of the process that has told them.
package protocol AlertShelf: Sendable {
    /// What processes that are gone have told, and nobody else has taken: this process's from now on.
    func inherit() async -> [StandingAlert]
    /// Writes these, and removes what is written of those.
    ///
    /// - Returns: false when it could not; then the same is asked again.
    func keep(_ standing: [StandingAlert], dropping: [Alert.Subject]) async -> Bool
}
