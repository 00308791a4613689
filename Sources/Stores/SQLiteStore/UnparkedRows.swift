import PushModel

/// The rows of this process that count as in memory, by registration, so that the pushes that end with a
/// registration are found. Nobody else changes such a row, so it can be settled without being read.
///
/// An index in the file would be written twice for each push, though few registrations end while something is
/// owed to them. In memory it is an entry for each push that lanes hold, which are a few thousand of each.
struct UnparkedRows {
    struct Row {
        let record: Digest16?
        /// What is needed to settle it; `nil`: the row has to be read.
        var written: Written?
    }

    /// A row as it was written and still is.
    struct Written {
        let id: PushID
        let epoch: Int64
        let lane: String
        /// Of its sealed part.
        let bytes: Int
        let first: OutcomeKind?
    }

    /// A row's number, hashed by one multiplication instead of the library's own hash, which every push pays
    /// for four times. We number the rows ourselves, so a stranger can choose nothing.
    private struct Number: Hashable {
        let value: Int64

        init(_ value: Int64) { self.value = value }

        func _rawHashValue(seed: Int) -> Int {
            let mixed = UInt64(bitPattern: value) ^ UInt64(bitPattern: Int64(seed))
            let product = mixed.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            return Int(truncatingIfNeeded: product.high ^ product.low)
        }
    }

    private var standing: [Number: Row] = [:]
    /// What stood before, newest last, so that a transaction can be undone.
    private var before: [(number: Number, row: Row?)] = []

    var count: Int { standing.count }

    mutating func set(_ number: Int64, _ row: Row?) {
        let number = Number(number)
        let stood = standing.updateOrRemove(number, row)
        if row != nil || stood != nil { before.append((number, stood)) }
    }

    /// Removes a row that is to be settled, if it is as the lane has it.
    ///
    /// - Returns: `nil`, and nothing has changed, when the file has to be asked.
    mutating func take(_ step: StoredSettlement) -> Written? {
        // Looked up once.
        guard let place = standing.index(forKey: Number(step.row)),
            let written = standing[place].value.written, written.id == step.id, written.epoch == step.epoch
        else { return nil }
        let (number, row) = standing.remove(at: place)
        before.append((number, row))
        return written
    }

    /// Looks through all of them.
    func rows(of keys: Set<Digest16>) -> [Int64] {
        standing.compactMap { number, row in
            row.record.map { keys.contains($0) } ?? false ? number.value : nil
        }
    }

    // MARK: undoing

    var changes: Int { before.count }

    mutating func keep() { before.removeAll(keepingCapacity: true) }

    mutating func undo(to changes: Int) {
        while before.count > changes, let (number, row) = before.popLast() {
            _ = standing.updateOrRemove(number, row)
        }
    }
}

extension Dictionary {
    /// - Returns: what stood there.
    fileprivate mutating func updateOrRemove(_ key: Key, _ value: Value?) -> Value? {
        if let value { updateValue(value, forKey: key) } else { removeValue(forKey: key) }
    }
}

/// Registrations that were changed lately. A push that was made from one of them before the change is checked
/// again when it comes in; all others need no check.
///
/// A new registration is not among them unless another of its key went lately: nothing was made from it
/// before it stood. So a server that registers all its phones fills nothing here, and each of their pushes
/// is spared a look-up.
struct RecentChanges {
    /// As many as are remembered by name, for a while, some two megabytes; when there are more, every push
    /// is looked at.
    private static let most = 50_000
    /// Longer than any call is held, or under way.
    private static let span = Duration.seconds(120)

    /// With the address that each has named since; 0: it no longer exists. Of either, half of its keyed
    /// digest: of two registrations that share one, the other is checked in vain.
    private var lately: [UInt64: UInt64] = [:]
    private var earlier: [UInt64: UInt64] = [:]
    private var began: UnixTime?
    private var isFull = false
    private var wasFull = false

    mutating func note(_ changes: [ChangedRegistration], at now: UnixTime) {
        turn(now)
        for change in changes
        where change.mayOwe || lately[change.key.low] != nil || earlier[change.key.low] != nil {
            put(change.key, change.address)
        }
    }

    /// A registration has been removed because its time had passed. That ends no push that was made from it,
    /// but another registration of its key would.
    mutating func noteLapsed(_ key: Digest16, _ address: Digest16, at now: UnixTime) {
        turn(now)
        put(key, address)
    }

    private mutating func put(_ key: Digest16, _ address: Digest16?) {
        if lately.count < Self.most || lately[key.low] != nil {
            lately[key.low] = Self.half(address)
        } else {
            isFull = true
        }
    }

    /// Registrations that are remembered.
    var count: Int { lately.count + earlier.count }

    /// Whether that registration may not stand any more as it did for somebody who found that address in it.
    mutating func mayHaveEnded(_ key: Digest16, _ address: Digest16?, at now: UnixTime) -> Bool {
        guard began != nil else { return false }
        turn(now)
        // The remembered address may be from before a change for which there was no room.
        guard !isFull, !wasFull else { return true }
        guard let standing = lately[key.low] ?? earlier[key.low] else { return false }
        return standing == 0 || standing != Self.half(address)
    }

    private static func half(_ address: Digest16?) -> UInt64 { address.map { max($0.low, 1) } ?? 0 }

    /// Forgets what is old. A clock that was set back makes it remember for longer.
    private mutating func turn(_ now: UnixTime) {
        guard let began else { return self.began = now }
        guard now.since(began) >= Self.span else { return }
        let isOld = now.since(began) >= Self.span * 2
        (earlier, wasFull) = isOld ? ([:], false) : (lately, isFull)
        (lately, isFull) = ([:], false)
        self.began = now
    }
}

/// A registration that a change has written, or ended.
struct ChangedRegistration {
    let key: Digest16
    /// The address that it names now; `nil`: it does not exist, or names none.
    var address: Digest16?
    /// Pushes may be owed to its former version.
    var mayOwe = true
}
