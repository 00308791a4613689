import PushModel

/// Which devices were woken a moment ago. A device is woken at once, and then not again before the pause is
/// over. Triggers that come during the pause cause one wake together at its end.
///
/// Nothing is lost: a device that was woken may have looked before the later message was there, so it is
/// woken once more. Times are milliseconds of a monotonic clock.
struct DevicePauses: Sendable {
    enum Turn: Sendable, Equatable {
        case now
        /// The wake comes this many milliseconds later.
        case later(Int64)
        /// A wake that is still to come covers this one too.
        case covered
    }

    private struct Place {
        let key: Digest16
        let until: Int64
    }

    var span: Int64
    private let limit: Int
    /// When the device's pause is over. A delayed wake begins a new pause when it happens.
    private var until: [Digest16: Int64] = [:]
    private var order = KeyQueue<Place>()
    /// How many places one call frees, so that no call ever scans the table.
    private static let sweep = 64

    /// - Parameters:
    ///   - span: milliseconds; 0: every trigger wakes at once.
    ///   - limit: the most devices held; beyond it a device is woken at once.
    init(span: Int64, limit: Int) {
        self.span = span
        self.limit = limit
    }

    /// Places in use.
    var count: Int { order.count }

    mutating func take(_ key: Digest16, at now: Int64) -> Turn {
        guard span > 0 else { return .now }
        forget(at: now)
        guard let end = until[key], end > now else {
            hold(key, until: now + span)
            return .now
        }
        // The pause after a delayed wake ends more than a span from now.
        if end > now + span { return .covered }
        hold(key, until: end + span)
        return .later(end - now)
    }

    /// The wake did not happen after all.
    mutating func release(_ key: Digest16) { until[key] = nil }

    mutating func forget(at now: Int64) {
        for _ in 0..<Self.sweep {
            guard let oldest = order.first, oldest.until <= now else { return }
            _ = order.popFirst()
            if until[oldest.key] == oldest.until { until[oldest.key] = nil }
        }
    }

    private mutating func hold(_ key: Digest16, until end: Int64) {
        guard order.count < limit else { return }
        until[key] = end
        order.append(Place(key: key, until: end))
    }
}
