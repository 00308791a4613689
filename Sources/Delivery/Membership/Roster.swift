package import PushModel

/// The members of a group, as the store listed them last, and which member does each piece of work.
///
/// Every process reads the same rows, by the store's clock, and draws the same conclusions from them, so the
/// processes need not talk to each other: work goes to the member that ranks highest for its key (rendezvous
/// hashing), and when a member comes or goes, only its own share moves. If two views differ for a moment, the
/// work is done twice rather than not at all (decision 0039). Pieces that can replace one another are divided
/// among the members (decision 0074).
package struct Roster: Sendable {
    /// How long a member is known before it takes its share: two renewals, so that by then all others have
    /// read of it, and all change over at the same moment of the store's clock.
    package static let settling = Duration.seconds(10)
    /// How long both sides of a change-over overlap: moments are read from a store that takes time to answer.
    package static let overlap = Duration.milliseconds(500)

    private struct Place: Sendable {
        var owner: OwnerID
        var isUs: Bool
        var joinedAgo: Duration
        /// When it takes its share.
        var settles: ContinuousClock.Instant
        /// It had renewed not long before the reading.
        var isFresh: Bool
        var aliveUntil: ContinuousClock.Instant
        var hasLeft: Bool

        /// One that had renewed in time when the store was last read counts until it is read again: a store
        /// that is out must not make each member work for all.
        func isAlive(at now: ContinuousClock.Instant) -> Bool {
            isUs ? !hasLeft : isFresh || !hasLeft && aliveUntil > now
        }
    }

    /// A member that has left or died.
    package struct Ended: Sendable, Hashable {
        package var owner: OwnerID
        /// From this time on its share may not have been worked; before, it was.
        package var workedUntil: ContinuousClock.Instant
    }

    private let places: [Place]
    private let lease: Duration

    /// - Parameters:
    ///   - began: when the store was asked, and `ended`: when it had answered.
    ///   - lease: what a renewal is good for.
    package init(
        _ members: [Member], asked began: ContinuousClock.Instant, answered ended: ContinuousClock.Instant,
        lease: Duration
    ) {
        self.lease = lease
        places = members.map { member in
            // The store's answer was true at some moment in between: so we begin early and others end late.
            let settles =
                member.isUs
                ? began - member.joinedAgo + Self.settling - Self.overlap
                : ended - member.joinedAgo + Self.settling + Self.overlap
            return Place(
                owner: member.owner, isUs: member.isUs, joinedAgo: member.joinedAgo, settles: settles,
                isFresh: !member.hasLeft && member.aliveFor > lease / 2, aliveUntil: ended + member.aliveFor,
                hasLeft: member.hasLeft)
        }
    }

    /// Members that work at that moment; never empty while we are one.
    private func working(at now: ContinuousClock.Instant) -> [Place] {
        let living = places.filter { $0.isAlive(at: now) }
        let settled = living.filter { $0.settles <= now }
        if !settled.isEmpty { return settled }
        // All members are new: the first of them works for all until the others have settled.
        let first = living.min {
            $0.joinedAgo == $1.joinedAgo ? $0.owner.value < $1.owner.value : $0.joinedAgo > $1.joinedAgo
        }
        return first.map { [$0] } ?? []
    }

    /// How many share the work; at least 1.
    package func count(at now: ContinuousClock.Instant) -> Int { max(1, working(at: now).count) }

    /// Whether we are the only member.
    package var isLone: Bool { places.allSatisfy { $0.isUs } }

    /// Whether another member would take over our work, even one that has only just come.
    package func hasOthers(at now: ContinuousClock.Instant) -> Bool {
        places.contains { !$0.isUs && $0.isAlive(at: now) }
    }

    /// The member that does the piece of work with this key; `nil`: no member is known, not even us.
    package func worker(of key: Digest16, at now: ContinuousClock.Instant) -> (owner: OwnerID, isUs: Bool)? {
        working(at: now).max {
            let (left, right) = (Self.rank(key, $0.owner), Self.rank(key, $1.owner))
            return left == right ? $0.owner.value < $1.owner.value : left < right
        }.map { ($0.owner, $0.isUs) }
    }

    /// The members that do these pieces of work, which can replace one another: they are divided, so that
    /// when one member dies others still have some. No member has two more of them than another.
    ///
    /// Of all pairs of a piece and a member, those that rank highest are taken first, as long as the member
    /// has room, so most pieces stay with the member that would get them alone.
    ///
    /// - Returns: as many as there are pieces, in their order; empty while nobody is known.
    package func workers(
        of pieces: [Digest16], at now: ContinuousClock.Instant
    ) -> [(owner: OwnerID, isUs: Bool)] {
        let working = working(at: now)
        guard working.count > 1 else {
            return working.first.map { Array(repeating: ($0.owner, $0.isUs), count: pieces.count) } ?? []
        }
        let (least, rest) = pieces.count.quotientAndRemainder(dividingBy: working.count)
        // The number of members that have one piece more than the others.
        var more = rest
        var counts = [Int](repeating: 0, count: working.count)
        var takers = [Int?](repeating: nil, count: pieces.count)
        for pair in Self.pairs(pieces, working) where takers[pair.piece] == nil {
            if counts[pair.member] >= least {
                guard counts[pair.member] == least, more > 0 else { continue }
                more -= 1
            }
            counts[pair.member] += 1
            takers[pair.piece] = pair.member
        }
        // Each piece finds a member: room that is left at the end was there for every earlier pair.
        return takers.compactMap { $0 }.map { (working[$0].owner, working[$0].isUs) }
    }

    /// All pairs of a piece and a member, by their indices, the highest in rank first: in the same order for
    /// all who know the same pieces and members, whatever order they know them in.
    private static func pairs(_ pieces: [Digest16], _ working: [Place]) -> [(piece: Int, member: Int)] {
        let ranked = pieces.indices.flatMap { piece in
            working.indices.map { member in
                (rank: rank(pieces[piece], working[member].owner), piece: piece, member: member)
            }
        }
        return ranked.sorted {
            if $0.rank != $1.rank { return $0.rank > $1.rank }
            let (left, right) = (working[$0.member].owner.value, working[$1.member].owner.value)
            return left == right ? pieces[$0.piece] > pieces[$1.piece] : left > right
        }.map { ($0.piece, $0.member) }
    }

    /// Members that have died or left, as far as the store still tells.
    package func ended(at now: ContinuousClock.Instant) -> [Ended] {
        places.filter { !$0.isUs && ($0.hasLeft || !$0.isFresh && $0.aliveUntil <= now) }.map { place in
            let workedUntil = place.hasLeft ? place.aliveUntil : place.aliveUntil - lease
            return Ended(owner: place.owner, workedUntil: workedUntil - Self.overlap)
        }
    }

    /// Spread evenly over members and keys. Nobody outside knows an owner's number, so nobody can choose keys
    /// that fall to one member.
    private static func rank(_ key: Digest16, _ owner: OwnerID) -> UInt64 {
        mix(mix(key.high ^ owner.value.high) ^ key.low ^ owner.value.low)
    }

    /// The finalizer of SplitMix64.
    private static func mix(_ value: UInt64) -> UInt64 {
        var word = value &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
