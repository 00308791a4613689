import PushModel

/// Both clocks out of the one that an app gives. Pauses go on when the date is set back, and end early when
/// it is set forward.
struct TimeLine: Sendable {
    private(set) var moment = Moment(wall: .distantPast, instant: TimeLine.start)

    /// Where it begins says nothing: spans count.
    private static let start = ContinuousClock.now

    /// The moment at which an app's clock says this.
    mutating func moment(_ now: UnixTime) -> Moment {
        let span = min(max(now.since(moment.wall), .zero), Self.mostSpan)
        moment = Moment(wall: now, instant: moment.instant + span)
        return moment
    }

    /// The date of an instant, as the app's clock went last.
    func time(_ instant: ContinuousClock.Instant) -> UnixTime { moment.wall + (instant - moment.instant) }

    /// Longer than any pause is as long as all of them.
    private static let mostSpan = Duration.seconds(366 * 86_400)
}
