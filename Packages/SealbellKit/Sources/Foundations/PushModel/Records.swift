/// A room for records: an instance's name and a word of the protocol, `main/device`. Clear text.
package struct Space: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    package init(_ instance: ConfiguredName, _ room: StaticString) { text = "\(instance.text)/\(room)" }
    /// A room of the core itself: `core/learned`.
    package init(core room: StaticString) { text = "core/\(room)" }
    package init(text: String) { self.text = text }
    package var description: String { text }

    /// Asked for each name that is digested: spaces come from the configuration and from static words.
    package func _rawHashValue(seed: Int) -> Int {
        var hash = NameHash(seed: seed)
        hash.add(text)
        return hash.value
    }

    /// What deliveries showed about device addresses; names in this room are made of device tokens.
    package static let learned = Space(core: "learned")
    /// What became of the pushes of each registration (decision 0144); names in this room are digests.
    package static let history = Space(core: "history")
    /// Whether the `address` of records in that room names the registration beside which they stand: they are
    /// none themselves, and nothing is owed to them.
    package static func standsBeside(_ text: String) -> Bool {
        text == learned.text || text == history.text
    }
    /// Where those of one instance's registrations are named: equal addresses of two look unrelated.
    package static func addresses(of instance: ConfiguredName) -> Space { Space(instance, "address") }
    /// Whether it is the addresses of one instance.
    package var isAddresses: Bool { text.hasSuffix("/address") }
    /// Whether the bodies of its records hold their names, so that another lookup key can find them anew.
    /// Those that are made of tokens do not: what they tell is soon learned again.
    package var keepsNames: Bool { !isQuickly(.learned) }

    /// Lengths first: asked of each row that is read, and the library's comparison of two texts is dear.
    private func isQuickly(_ other: Space) -> Bool {
        text.utf8.count == other.text.utf8.count && self == other
    }
}

/// The name of a record. Engines see a 16-byte keyed digest of it.
package struct RecordKey: Sendable {
    package let space: Space
    package let name: Secret

    package init(_ space: Space, _ name: Secret) {
        self.space = space
        self.name = name
    }
}

/// What the relay remembers of one registration, server, realm or challenge. All but names and body are clear
/// columns. Optionals have their long names for the reason that ``Verdict`` gives.
package struct Record: Sendable {
    package enum State: Sendable, Hashable {
        case live
        case expired(at: UnixTime)
        case tombstone
    }

    package var key: RecordKey
    /// The store's own digest of it, set on reading. `nil` in a record not yet written.
    package var digest: Digest16?
    /// Indexed: all records of one owner can be paged.
    package var owner: Optional<RecordKey>
    /// Indexed: app and token, in ``Space/addresses(of:)``, so that registrations are found by their address.
    package var address: Optional<RecordKey>
    /// The store's own digest of it, set on reading. `nil` in a record not yet written.
    package var addressDigest: Digest16?
    package var version: UInt64
    package var state: State
    /// When the relay last accepted it, by our clock.
    package var touchedAt: UnixTime
    /// After this time `purge` may remove it.
    package var expiresAt: UnixTime
    /// Set by the engine at each write, rising over the whole store. 0 in a record not yet written.
    package var revision: UInt64
    package var body: Secret

    package init(
        key: RecordKey, digest: Digest16? = nil, owner: RecordKey? = nil, address: RecordKey? = nil,
        addressDigest: Digest16? = nil, version: UInt64 = 0, state: State = .live, touchedAt: UnixTime,
        expiresAt: UnixTime = .distantFuture, revision: UInt64 = 0, body: Secret
    ) {
        self.key = key
        self.digest = digest
        self.owner = owner
        self.address = address
        self.addressDigest = addressDigest
        self.version = version
        self.state = state
        self.touchedAt = touchedAt
        self.expiresAt = expiresAt
        self.revision = revision
        self.body = body
    }
}

extension Record {
    /// How long an expired record stays. It lets a late repeat of an old registration be told from a newer
    /// one, so it must outlast the day that a registration stays fresh; and it spares a phone that was away
    /// for a month its place until it registers anew. A record that is gone gives an origin the same answer.
    package static let expiredLife = Duration.seconds(42 * 86_400)
}

/// When a change may be made. Data, not a closure, so that an engine may batch and pipeline.
package enum Condition: Sendable, Hashable {
    case any
    /// No record of that key, or one whose `expiresAt` has passed.
    case absent
    /// The record stands at exactly this revision.
    case revision(UInt64)
    /// Absent, or the record's `version` is lower.
    case versionBelow(UInt64)
    /// Absent, or `touchedAt` is not later.
    case touchedNotAfter(UnixTime)
    /// The same; and where the new record names another one in its `address`, that one is live.
    case besideLive(touchedNotAfter: UnixTime)
    /// Absent, or still the registration that a push was made from: not touched later and, where an address
    /// is given, of that address.
    case madeFrom(touchedAt: UnixTime, address: Digest16?)
}

/// One change of the registry.
package enum Change: Sendable {
    case put(Record, if: Condition)
    /// Puts what goes with a registration and with it: only while that one is live, and unless what stands
    /// was touched later. `nil`: with none. Only the store knows such digests.
    case putBeside(Record, registration: Digest16?, notTouchedAfter: UnixTime)
    /// A live record expires: its content is forgotten, its state says since when, and its `expiresAt`
    /// becomes at most ``Record/expiredLife`` after that. One that has expired already, or is a tombstone,
    /// stays as it is.
    case expire(RecordKey, at: UnixTime, if: Condition)
    /// The same by the digest that an owed push carries; only the store knows such digests.
    case expireStored(Digest16, at: UnixTime, if: Condition)
    case delete(RecordKey, if: Condition)
}

/// What some records amount to.
package struct RecordTally: Sendable, Hashable {
    package var records: Int
    /// Of their sealed bodies.
    package var bytes: Int

    package static let none = RecordTally(records: 0, bytes: 0)

    package init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }

    package static func + (left: RecordTally, right: RecordTally) -> RecordTally {
        RecordTally(records: left.records + right.records, bytes: left.bytes + right.bytes)
    }
}

/// Which records to page.
package enum RecordIndex: Sendable {
    case space(Space)
    case owner(RecordKey)
    case address(RecordKey)
    /// Those of an owner that expired at that moment or before, and whose `version` is not 0. They come in
    /// order of `version`, which is also what a page begins after, and have neither name nor body. What it
    /// costs does not grow with the owner's live records.
    case expired(owner: RecordKey, by: UnixTime)
}

/// What became of a set of changes. They are made all or none.
package enum Applied: Sendable, Hashable {
    case committed
    /// The change at this index did not meet its condition; nothing was written.
    case refused(index: Int)
}
