import PushModel

/// Something that was done to relays, and by which a push may arrive twice.
struct TrialFault: Sendable {
    enum Kind: Sendable {
        /// The process is gone: whatever it sent last may be unsettled. Who sends it again is another
        /// process.
        case killed
        /// The process stands still: as above, and it must not send again itself.
        case suspended
        /// The store cannot be reached: what is sent meanwhile cannot be settled, and who has no lease any
        /// more may send nothing.
        case storeLost
    }

    let kind: Kind
    let relays: Set<Int>
    /// Just before.
    let began: UnixTime
    /// Until here its relays may have sent what they could not settle.
    let sentUntil: UnixTime
    /// The process is gone, and the push service has read all that it had sent; or it goes on, or has its
    /// store again.
    let ended: UnixTime

    /// A push that is seen twice was in flight at a fault only if it was sent at most so long before: an
    /// answer and its settlement take milliseconds, and this leaves room for a machine that is busy with
    /// other things.
    static let inFlightSpan = Duration.seconds(3)

    /// Between the check of the lease and the stamp of the push service lie a socket and two schedulers.
    static let stampSlack = Duration.seconds(1)

    /// - Parameter sentUntil: `nil`: the end.
    init(
        _ kind: Kind = .killed, _ relays: Set<Int> = [0], began: UnixTime, sentUntil: UnixTime? = nil,
        ended: UnixTime
    ) {
        (self.kind, self.relays, self.began, self.ended) = (kind, relays, began, ended)
        self.sentUntil = sentUntil ?? ended
    }

    /// Whether it forbids that this was sent.
    func forbids(_ arrival: TrialArrival) -> Bool {
        kind == .storeLost && relays.contains(arrival.relay) && arrival.at > sentUntil + Self.stampSlack
            && arrival.at < ended
    }

    /// Whether it explains that a push came twice.
    func explains(_ first: TrialArrival, _ second: TrialArrival) -> Bool {
        guard relays.contains(first.relay), began.since(first.at) <= Self.inFlightSpan, first.at <= sentUntil
        else { return false }
        return switch kind {
        case .killed: second.at >= ended
        case .suspended: second.relay != first.relay && second.at >= began
        case .storeLost: second.at >= began
        }
    }
}
