import PushModel

/// The keys that were taken within a span. Their number is limited; the oldest make room.
///
/// Several processes on one store do not share it: a wrap always goes to the same process, but a message that
/// comes in several wraps may not (decision 0039).
///
/// A key is reserved before the work. It stays, or is released if the work could not be done.
struct ReplayWindow: Sendable {
    private struct Held {
        var stamp: UInt64
        var until: Int64
    }

    private struct Place {
        var key: Digest16
        var stamp: UInt64
        var until: Int64
    }

    /// Applies to keys that are reserved from now on.
    var span: Int64
    private let limit: Int
    private var held: [Digest16: Held] = [:]
    private var order = KeyQueue<Place>()
    private var stamp: UInt64 = 0
    /// How many places one call frees, so that no call ever scans the table.
    private static let sweep = 64

    /// - Parameter span: milliseconds.
    init(span: Int64, limit: Int) {
        self.span = span
        self.limit = limit
    }

    /// Places in use, including those of released keys; this number is bounded.
    var count: Int { order.count }

    /// False if the key is already held.
    mutating func reserve(_ key: Digest16, at now: Int64) -> Bool {
        forget(at: now)
        if let seen = held[key], seen.until > now { return false }
        if order.count >= limit { dropOldest() }
        stamp += 1
        held[key] = Held(stamp: stamp, until: now + span)
        order.append(Place(key: key, stamp: stamp, until: now + span))
        return true
    }

    mutating func release(_ key: Digest16) { held[key] = nil }

    mutating func forget(at now: Int64) {
        for _ in 0..<Self.sweep {
            guard let oldest = order.first, oldest.until <= now else { return }
            dropOldest()
        }
    }

    private mutating func dropOldest() {
        guard let oldest = order.popFirst(), held[oldest.key]?.stamp == oldest.stamp else { return }
        held[oldest.key] = nil
    }
}
