/// Which of a push service's two environments an address belongs to. A service that has only one uses
/// `.production`.
package enum Environment: String, Sendable, Hashable, CaseIterable {
    case production, sandbox
}

/// Order inside a lane: urgent (calls) before normal (messages) before background (removals, syncs).
package enum PushClass: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    case urgent = 0, normal = 1, background = 2
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The next more urgent one, if there is one.
    package init?(above other: PushClass) {
        switch other {
        case .urgent: return nil
        case .normal: self = .urgent
        case .background: self = .normal
        }
    }
}

/// How long a relay owes what it accepted: until the outcome, or until the process ends.
package enum Custody: Sendable { case durable, volatile }

/// One way out: app × service × environment. The text form is a clear column and a metric label.
package struct LaneName: Sendable, Hashable, CustomStringConvertible {
    package let app: ConfiguredName
    package let service: PushService
    package let environment: Environment

    package init(app: ConfiguredName, service: PushService, environment: Environment) {
        self.app = app
        self.service = service
        self.environment = environment
    }

    package func _rawHashValue(seed: Int) -> Int {
        var hash = NameHash(seed: seed)
        hash.add(app.text)
        hash.add(service.name)
        hash.add(environment == .production ? 0 : 1)
        return hash.value
    }

    /// `acme-chat/apns/production`
    package var description: String { "\(app)/\(service.name)/\(environment.rawValue)" }

    /// Reads the text form.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let app = ConfiguredName(String(parts[0])),
            let service = PushService(parts[1]),
            let environment = Environment(rawValue: String(parts[2]))
        else { return nil }
        self.init(app: app, service: service, environment: environment)
    }
}

/// What a relay role yields: one notification for one device, authorised and sealed by its origin.
package struct Push: Sendable {
    package var message: ProviderMessage
    package var pushClass: PushClass
    /// Who asked. Pace and repeats go by it, and turns where the verdict says so. Never logged.
    package var origin: Secret
    /// The registration that feedback expires.
    package var record: RecordKey?
    /// The store's own digest of it (``Record/digest``). `nil`: the store makes it once more.
    package var recordDigest: Digest16?
    /// When the relay accepted that registration, by our clock.
    package var touchedAt: UnixTime
    /// The address that the registration named then (``Record/addressDigest``): what is learned from this
    /// push applies to that address. `nil`: unknown.
    package var registeredAddress: Digest16?
    /// Until when the relay owes this push.
    package var custodyEnds: UnixTime
    /// What makes a repeat recognisable: the address and the ciphertext. `nil`: repeats are not looked for.
    package var repeatIdentity: Secret?

    package init(
        message: ProviderMessage, pushClass: PushClass, origin: Secret, record: RecordKey?,
        recordDigest: Digest16? = nil, touchedAt: UnixTime, registeredAddress: Digest16? = nil,
        custodyEnds: UnixTime, repeatIdentity: Secret?
    ) {
        self.message = message
        self.pushClass = pushClass
        self.origin = origin
        self.record = record
        self.recordDigest = recordDigest
        self.touchedAt = touchedAt
        self.registeredAddress = registeredAddress
        self.custodyEnds = custodyEnds
        self.repeatIdentity = repeatIdentity
    }
}

/// A push that the relay owes.
///
/// It is passed on often, so the parts that never change are in one object that all copies share.
package struct OwedPush: Sendable {
    @usableFromInline let fixed: Fixed
    package var lane: LaneName
    package var notBefore: UnixTime
    package var custodyEnds: UnixTime
    /// Attempts made so far, and what is known of them.
    package var attempts: Attempts

    /// Attempts made so far.
    package var attempt: Int { attempts.made }

    /// - Parameters:
    ///   - sentAs: `nil`: as the id.
    ///   - attempt: as the row keeps it (``Attempts/init(stored:)``).
    package init(
        id: PushID, sentAs: PushID? = nil, row: Int64, lane: LaneName, pushClass: PushClass, origin: Digest16,
        record: Digest16?,
        touchedAt: UnixTime, registeredAddress: Digest16? = nil, notBefore: UnixTime, custodyEnds: UnixTime,
        attempt: Int, epoch: Int64, mark: Digest16?, instance: ConfiguredName, message: ProviderMessage
    ) {
        fixed = Fixed(
            id: id, sentAs: sentAs ?? id, row: row, pushClass: pushClass, origin: origin, record: record,
            touchedAt: touchedAt, registeredAddress: registeredAddress, epoch: epoch, mark: mark,
            instance: instance, message: message, custody: .durable)
        self.lane = lane
        self.notBefore = notBefore
        self.custodyEnds = custodyEnds
        attempts = Attempts(stored: attempt)
    }

    /// A push that stands in memory only: no row, no mark, no registration.
    ///
    /// - Parameter origin: whose turn it takes in the rounds of a lane; names nobody.
    package init(
        volatile push: VolatilePush, id: PushID, lane: LaneName, origin: Digest16, notBefore: UnixTime,
        instance: ConfiguredName
    ) {
        fixed = Fixed(
            id: id, sentAs: id, row: 0, pushClass: push.pushClass, origin: origin, record: nil,
            touchedAt: .distantPast, registeredAddress: nil, epoch: 0, mark: nil, instance: instance,
            message: push.message, custody: .volatile)
        self.lane = lane
        self.notBefore = notBefore
        custodyEnds = push.custodyEnds
        attempts = Attempts(stored: 0)
    }
}

extension OwedPush {
    @inlinable package var id: PushID { fixed.id }
    /// The `apns-id` of every attempt, so a double can be recognised on the other side. Of a push with a row
    /// it is another one than its `id`: only the store's key tells which belongs to which.
    @inlinable package var sentAs: PushID { fixed.sentAs }
    /// The engine's own handle for the row; means nothing outside the engine that gave it.
    @inlinable package var row: Int64 { fixed.row }
    @inlinable package var pushClass: PushClass { fixed.pushClass }
    /// Whose turn it takes in its lane (``Turns``): a keyed digest of instance and origin, credential or
    /// phone, or a client's number.
    @inlinable package var origin: Digest16 { fixed.origin }
    /// Keyed digest of the registration's key.
    @inlinable package var record: Digest16? { fixed.record }
    @inlinable package var touchedAt: UnixTime { fixed.touchedAt }
    /// As ``Push/registeredAddress``.
    @inlinable package var registeredAddress: Digest16? { fixed.registeredAddress }
    @inlinable package var epoch: Int64 { fixed.epoch }
    @inlinable package var mark: Digest16? { fixed.mark }
    @inlinable package var instance: ConfiguredName { fixed.instance }
    @inlinable package var message: ProviderMessage { fixed.message }
    /// Whether a row of a store stands behind it.
    @inlinable package var custody: Custody { fixed.custody }

    /// The parts of a push that never change.
    @usableFromInline final class Fixed: Sendable {
        @usableFromInline let id: PushID
        @usableFromInline let sentAs: PushID
        @usableFromInline let row: Int64
        @usableFromInline let pushClass: PushClass
        @usableFromInline let origin: Digest16
        @usableFromInline let record: Digest16?
        @usableFromInline let touchedAt: UnixTime
        @usableFromInline let registeredAddress: Digest16?
        @usableFromInline let epoch: Int64
        @usableFromInline let mark: Digest16?
        @usableFromInline let instance: ConfiguredName
        @usableFromInline let message: ProviderMessage
        @usableFromInline let custody: Custody

        init(
            id: PushID, sentAs: PushID, row: Int64, pushClass: PushClass, origin: Digest16, record: Digest16?,
            touchedAt: UnixTime, registeredAddress: Digest16?, epoch: Int64, mark: Digest16?,
            instance: ConfiguredName, message: ProviderMessage, custody: Custody
        ) {
            self.id = id
            self.sentAs = sentAs
            self.row = row
            self.pushClass = pushClass
            self.origin = origin
            self.record = record
            self.touchedAt = touchedAt
            self.registeredAddress = registeredAddress
            self.epoch = epoch
            self.mark = mark
            self.instance = instance
            self.message = message
            self.custody = custody
        }
    }
}
