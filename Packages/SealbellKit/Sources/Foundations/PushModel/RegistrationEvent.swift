/// What becomes of pushes to one registration, as its history counts them (decision 0144). The numbers stand
/// in the store.
package enum RegistrationEvent: UInt8, Sendable, Hashable, CaseIterable {
    /// The push service took custody.
    case delivered = 1
    /// An attempt that is made again later.
    case delayed = 2
    /// The push service refused the push for good.
    case refused = 3
    /// Custody ended before anybody took the push.
    case expired = 4
    /// It may have arrived, and was not sent again.
    case dropped = 5
    /// The registration got another address, or ended, while the push waited in memory.
    case replaced = 6

    package var label: String {
        switch self {
        case .delivered: "delivered"
        case .delayed: "delayed"
        case .refused: "refused"
        case .expired: "expired"
        case .dropped: "dropped"
        case .replaced: "replaced"
        }
    }
}
