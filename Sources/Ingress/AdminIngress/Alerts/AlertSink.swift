package import PushModel

/// A destination of notices beside log and gauge: a webhook or a mail command.
package protocol AlertSink: Sendable {
    /// For the log: `webhook`, `mail`.
    var way: NoteCode { get }
    /// Tells one notice; bounded by a deadline of its own.
    func tell(_ notice: AlertNotice) async -> AlertDelivery
}

/// The result of one attempt to deliver a notice.
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

/// Where raised alerts are kept beyond the end of the process that has told them.
package protocol AlertPersistence: Sendable {
    /// Alerts that earlier processes have told and nobody else has taken over: they now belong to this
    /// process.
    func inherit() async -> [StandingAlert]
    /// Writes the first, and removes what is stored of the second.
    ///
    /// - Returns: false when it could not; then the same is asked again.
    func keep(_ standing: [StandingAlert], dropping: [Alert.Subject]) async -> Bool
}
