import PushModel

/// What a lane knows of its pushes in the store, and when it asks for them. A value.
struct ParkedRows: Sendable {
    /// How full the lane's memory is: the durable pushes of each class and the more urgent ones.
    struct Room: Sendable {
        let limit: Int
        let count: Int
        let urgent: Int
        let normal: Int
        let all: Int

        func durable(upTo lowest: PushClass) -> Int {
            switch lowest {
            case .urgent: urgent
            case .normal: normal
            case .background: all
            }
        }
    }

    /// As far as this process knows.
    private(set) var count = 0
    /// Further rows that the pace has put off, as far as this process knows: they may have ended, or belong
    /// to another process. So they are not counted, and never prevent the store from being asked.
    private var putOff = PutOff()
    /// Those of them that came since the claim under way began.
    private var putOffSinceClaim = PutOff()
    /// The store is not asked again for a class before this time.
    private var claimNotBefore: [UnixTime] = [.distantPast, .distantPast, .distantPast]
    private var isClaiming = false
    /// What the claim asks for that is wanted, or under way.
    private var claimClasses = PushClass.urgent ... .background
    /// The class at which the next claim of a halted lane begins.
    private var claimTurn = 0
    /// Once a tick the store may be asked although memory is more than half full.
    private var mayClaimAhead = false
    /// The number of rows still to be claimed before they are due.
    private var hurried = 0
    /// Rows that were parked since the claim under way began.
    private var sinceClaim = 0
    /// Rows that were ever noted as parked.
    private(set) var noted = 0
    private let claimRows: Int
    private let longestWait: Duration
    /// The time between questions to the store that may have been too early.
    private let retryClaim: Duration

    /// - Parameter longestWait: no push is put off for longer.
    init(limits: DeliveryLimits, longestWait: Duration) {
        self.longestWait = longestWait
        claimRows = limits.claimRows
        retryClaim = limits.backoffBase
    }

    // MARK: what is there

    /// Pushes that the store holds as parked, due then.
    mutating func note(_ pushClass: PushClass, due: UnixTime, count added: Int = 1) {
        guard added > 0 else { return }
        count += added
        sinceClaim += added
        noted += added
        let level = Int(pushClass.rawValue)
        claimNotBefore[level] = min(claimNotBefore[level], due)
    }

    /// A push that the store holds as parked and that its origin's pace has put off until then.
    mutating func putOff(_ pushClass: PushClass, due: UnixTime) {
        putOff.add(pushClass, due: due)
        putOffSinceClaim.add(pushClass, due: due)
    }

    /// The store's own count.
    ///
    /// - Parameter hasGained: rows have come by another way: from a dead process, or from our own memory.
    /// - Parameter notedBefore: ``noted`` when the store was asked; `nil`: nothing came since.
    mutating func correct(_ stored: Int, hasGained: Bool = false, notedBefore: Int? = nil) {
        // Rows that were parked while the store counted may be missing from its count. A row that was parked,
        // claimed and parked again was noted twice: there are at most as many as we know of.
        let missed = notedBefore.map { min(noted - $0, count) } ?? 0
        let stored = max(0, stored - putOff.total, missed)
        // Rows that we do not know of came from a former lane.
        if hasGained || stored > count {
            for level in claimNotBefore.indices { claimNotBefore[level] = .distantPast }
        }
        count = stored
    }

    /// Rows that the pace had put off until now are parked like all others.
    mutating func wake(now: UnixTime) {
        for (pushClass, due) in putOff.take(upTo: now, within: longestWait) {
            note(pushClass, due: now, count: due)
        }
    }

    /// A tick: the store may be asked ahead once more.
    mutating func tick() { mayClaimAhead = true }

    // MARK: asking for it

    /// Nothing waits in the store as far as this process knows, and it is not being asked.
    var isEmpty: Bool { count == 0 && putOff.total == 0 && !isClaiming }

    /// Whether `ask` could call for a claim. If only pushes that were put off wait, the store says when the
    /// next is due.
    var mayAsk: Bool { !isClaiming && (count > 0 || putOff.total > 0) }

    /// Asks for a claim when memory is half empty: of all classes, or, if memory is full of less urgent
    /// pushes, of the more urgent classes.
    ///
    /// - Returns: whether one is called for that was not before.
    mutating func ask(for room: Room, isHalted: Bool, now: UnixTime) -> Bool {
        guard mayAsk, let classes = classesToClaim(room, isHalted, now) else { return false }
        isClaiming = true
        claimClasses = classes
        return true
    }

    /// Claims the rows that are parked now before they are due: as many as there are, each once, whatever
    /// becomes of them.
    mutating func hurry() {
        hurried = count + putOff.total
        for level in claimNotBefore.indices { claimNotBefore[level] = .distantPast }
    }

    /// The claim that was called for; `nil` unless one was.
    mutating func begin(_ room: Room, now: UnixTime) -> LaneClaim? {
        guard isClaiming else { return nil }
        sinceClaim = 0
        putOffSinceClaim = PutOff()
        for level in claimClasses.levels { claimNotBefore[level] = .distantFuture }
        let free = room.limit - room.durable(upTo: claimClasses.upperBound)
        return LaneClaim(
            of: min(max(free, 1), claimRows), claimClasses, at: hurried > 0 ? now + longestWait : now,
            retryAfter: retryClaim, longestWait: longestWait, isHurried: hurried > 0)
    }

    /// Rows that may still be there are asked for once more.
    mutating func end(_ claim: LaneClaim) {
        isClaiming = false
        if claim.isLast { putOff = putOffSinceClaim }
        count = claim.isLast ? sinceClaim : max(count - claim.pushes.count, putOff.total > 0 ? 0 : 1)
        // The store does not say when the next of a class is due; if that may be any moment, it is asked
        // again soon.
        for level in claimClasses.levels {
            let isSeen = claim.allSeen.map { level <= Int($0.rawValue) } ?? false
            let due = isSeen && claim.next <= claim.begun ? claim.begun + retryClaim : claim.next
            // A claim of rows that are not due says nothing about due rows; one that brought nothing may have
            // failed.
            let early = claim.pushes.isEmpty ? claim.asked + retryClaim : .distantPast
            claimNotBefore[level] = min(claimNotBefore[level], claim.isHurried ? early : due)
        }
        if claim.isHurried { hurried = claim.isLast ? 0 : max(0, hurried - max(1, claim.pushes.count)) }
    }

    private mutating func classesToClaim(
        _ room: Room, _ isHalted: Bool, _ now: UnixTime
    ) -> ClosedRange<PushClass>? {
        if room.all * 2 <= room.limit {
            return claimNotBefore.indices.contains { isClaimDue($0, now) } ? .urgent ... .background : nil
        }
        guard mayClaimAhead else { return nil }
        // A halted lane's turns come to all that is parked, one by one and of each class.
        if isHalted, room.count < room.limit {
            for step in PushClass.allCases.indices {
                let first = PushClass.allCases[(claimTurn + step) % PushClass.allCases.count]
                let classes = first ... .background
                guard classes.levels.contains(where: { isClaimDue($0, now) }) else { continue }
                (mayClaimAhead, claimTurn) = (false, Int(first.rawValue) + 1)
                return classes
            }
            return nil
        }
        return claimAhead(room, downTo: .normal, now) ?? claimAhead(room, downTo: .urgent, now)
    }

    private mutating func claimAhead(
        _ room: Room, downTo lowest: PushClass, _ now: UnixTime
    ) -> ClosedRange<PushClass>? {
        let classes = PushClass.urgent...lowest
        guard room.durable(upTo: lowest) * 2 <= room.limit,
            classes.levels.contains(where: { isClaimDue($0, now) })
        else { return nil }
        mayClaimAhead = false
        return classes
    }

    /// A moment that is further off than any wait was set by a clock that was since set back.
    private func isClaimDue(_ level: Int, _ now: UnixTime) -> Bool {
        now >= claimNotBefore[level] || claimNotBefore[level].since(now) > longestWait
    }
}

/// One claim of parked rows, and what the store's answers say of those that are left. A value.
struct LaneClaim: Sendable {
    /// How many it may bring.
    let room: Int
    let classes: ClosedRange<PushClass>
    /// In the future for one that is hurried.
    let begun: UnixTime
    /// It brings what is not due yet.
    let isHurried: Bool
    /// When it was made.
    var asked: UnixTime { isHurried ? begun + (.zero - longestWait) : begun }
    private let longestWait: Duration
    private(set) var pushes: [OwedPush] = []
    /// When the store may be asked again for these classes. By default, a failure is tried again after the
    /// first step of a back-off.
    private(set) var next: UnixTime
    /// All due rows of this class and the more urgent ones have been brought.
    private(set) var allSeen: PushClass?
    /// Nothing is parked beside what was brought and what has come meanwhile.
    private(set) var isLast = false

    init(
        of room: Int, _ classes: ClosedRange<PushClass>, at now: UnixTime, retryAfter: Duration,
        longestWait: Duration, isHurried: Bool = false
    ) {
        self.isHurried = isHurried
        self.room = room
        self.classes = classes
        self.longestWait = longestWait
        begun = now
        next = now + retryAfter
    }

    /// What was due.
    ///
    /// - Returns: whether the store is to be asked when the next will be.
    mutating func bring(_ found: [OwedPush]) -> Bool {
        pushes = found
        guard found.count == room else { return true }
        next = begun
        allSeen = found.last.flatMap { PushClass(above: $0.pushClass) }
        return false
    }

    /// When the next is due; `nil`: nothing waits.
    ///
    /// - Returns: up to when, and how many, more rows are to be claimed because everything that waits is due:
    ///   it was put off by a clock that was since set back.
    mutating func wait(until due: UnixTime?) -> (due: UnixTime, limit: Int)? {
        guard let due else {
            (next, isLast) = (begun, true)
            return nil
        }
        next = due
        allSeen = classes == .urgent ... .background ? nil : classes.upperBound
        return due.since(begun) > longestWait ? (due, room - pushes.count) : nil
    }

    /// What such a clock had put off.
    mutating func bringLate(_ found: [OwedPush]) {
        pushes += found
        next = begun
    }
}

extension ClosedRange<PushClass> {
    /// As indices of what is kept for each class.
    fileprivate var levels: ClosedRange<Int> { Int(lowerBound.rawValue)...Int(upperBound.rawValue) }
}
