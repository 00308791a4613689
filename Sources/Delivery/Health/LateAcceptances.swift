package import PushModel

/// Which origins, and which addresses of each, a lane's service has accepted lately.
///
/// It distinguishes an origin that is served from one that invents addresses. Only the former can be a
/// witness when a lane halts, and a push to an address that was reached an hour ago shows best whether the
/// lane works again (decision 0057). A value; bounded by its two numbers.
package struct LateAcceptances: Sendable {
    package struct Known: Sendable, Hashable {
        package fileprivate(set) var origin: Digest16
        /// Numbers that stand for addresses, as the breaker is given them; the last of them.
        package fileprivate(set) var addresses: [Int]
        fileprivate var next = 0
        fileprivate var at: ContinuousClock.Instant
    }

    /// Origins whose addresses are known: each of them gets one probe, one a minute, before the turns of all
    /// others.
    private static let mostOrigins = 16
    /// Addresses of each.
    private static let mostAddresses = 8

    /// Origins that are only counted, in each half of the span: most of an app's active ones, because a halt
    /// must find three of them among its last hundred answers.
    package static let mostCounted = 4_096
    private let mostCounted: Int

    /// The last accepted first.
    private var known: [Known] = []
    /// Who was accepted since the half of the span began, and in the half before.
    private var counted: Set<Digest16> = []
    private var countedBefore: Set<Digest16> = []
    private var halfBegan: ContinuousClock.Instant?
    private let span: Duration

    /// - Parameter span: how long an acceptance counts; of origins that are only counted at least half of it.
    /// - Parameter counted: origins that are only counted, in each half of it.
    package init(span: Duration, counted: Int = LateAcceptances.mostCounted) {
        self.span = span
        mostCounted = counted
    }

    /// Nearly always the first origin: then this costs a comparison and a store.
    package mutating func note(_ origin: Digest16, _ address: Int, at now: ContinuousClock.Instant) {
        if known.first?.origin != origin {
            count(origin, at: now)
            known.insert(entry(of: origin, at: now), at: 0)
        }
        known[0].at = now
        if known[0].addresses.count < Self.mostAddresses {
            known[0].addresses.append(address)
        } else {
            known[0].addresses[known[0].next] = address
            known[0].next = (known[0].next + 1) % Self.mostAddresses
        }
    }

    /// The origin's own entry, or the one that it replaces.
    private mutating func entry(of origin: Digest16, at now: ContinuousClock.Instant) -> Known {
        if let place = known.firstIndex(where: { $0.origin == origin }) { return known.remove(at: place) }
        guard known.count >= Self.mostOrigins, var last = known.popLast() else {
            return Known(origin: origin, addresses: [], at: now)
        }
        // Its memory is reused, so that many origins cost no allocation for each push.
        last.origin = origin
        last.addresses.removeAll(keepingCapacity: true)
        last.next = 0
        return last
    }

    private mutating func count(_ origin: Digest16, at now: ContinuousClock.Instant) {
        let age = halfBegan.map { now - $0 } ?? span
        if age >= span / 2 {
            countedBefore = age < span ? counted : []
            counted = []
            halfBegan = now
        }
        if counted.count < mostCounted { counted.insert(origin) }
    }

    /// Whether enough of the origins that were accepted lately are among the given ones: `most` of them, or
    /// all if there are fewer.
    package func areAmong(
        _ others: Set<Digest16>, atMost most: Int, at now: ContinuousClock.Instant
    ) -> Bool {
        let age = halfBegan.map { now - $0 } ?? span
        let late = Set(lately(now).map(\.origin))
        let sets = age < span / 2 ? [counted, countedBefore, late] : age < span ? [counted, late] : [late]
        let found = others.count { other in sets.contains { $0.contains(other) } }
        if found >= most { return true }
        // If there are more, one of the sets has more, or all of them are small.
        let all = sets.contains { $0.count >= most } ? most : sets.reduce(Set()) { $0.union($1) }.count
        return found >= min(most, all)
    }

    /// A push of that origin, sent because it is known, was not accepted.
    package mutating func forget(_ origin: Digest16) { known.removeAll { $0.origin == origin } }

    /// Those whose addresses are known, the last accepted first.
    package func lately(_ now: ContinuousClock.Instant) -> ArraySlice<Known> {
        known.prefix { now - $0.at < span }
    }
}
