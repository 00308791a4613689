package import PushModel

/// How many origins an app has, counted up to the number that must witness a halt.
///
/// The last few origins that this lane has heard of, each with the moment. An origin that has not been heard
/// of for a while does not count. Otherwise a lane could not halt while the app's other origins are silent,
/// and its registrations would end one by one.
package struct RecentOrigins: Sendable {
    /// The last heard of first.
    private var heard: [(origin: Digest16, at: ContinuousClock.Instant)] = []
    private let most: Int
    private let span: Duration

    package init(most: Int, span: Duration) {
        self.most = most
        self.span = span
    }

    package mutating func note(_ origin: Digest16, at now: ContinuousClock.Instant) {
        if heard.first?.origin == origin {
            heard[0].at = now
            return
        }
        if let place = heard.firstIndex(where: { $0.origin == origin }) {
            heard.remove(at: place)
        } else if heard.count >= most {
            heard.removeLast()
        }
        heard.insert((origin, now), at: 0)
    }

    package func count(at now: ContinuousClock.Instant) -> Int { heard.count { now - $0.at < span } }
}
