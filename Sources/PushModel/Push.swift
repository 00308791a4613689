/// A push service.
package enum ProviderKind: String, Sendable, Hashable, CaseIterable {
    case apns, fcm
}

/// Which of Apple's two services an address belongs to. FCM knows only `.production`.
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
    package let service: ProviderKind
    package let environment: Environment

    package init(app: ConfiguredName, service: ProviderKind, environment: Environment) {
        self.app = app
        self.service = service
        self.environment = environment
    }

    /// `acme-chat/apns/production`
    package var description: String { "\(app)/\(service.rawValue)/\(environment.rawValue)" }

    /// Reads the text form.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let app = ConfiguredName(String(parts[0])),
            let service = ProviderKind(rawValue: String(parts[1])),
            let environment = Environment(rawValue: String(parts[2]))
        else { return nil }
        self.init(app: app, service: service, environment: environment)
    }
}

/// `apns-push-type`, all that Apple documents for apps (docs/push-services.md §2.4).
package enum APNsPushType: String, Sendable, CaseIterable {
    case alert, background, voip, complication, fileprovider, mdm, liveactivity, location, pushtotalk
    case widgets, controls

    /// What is appended to the bundle id to form the topic.
    package var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// Largest body in bytes.
    package var bodyLimitBytes: Int { self == .voip ? 5120 : 4096 }
}

/// What APNs is asked to deliver.
package struct APNsMessage: Sendable {
    /// How `apns-topic` is made of the bundle id.
    package enum TopicForm: UInt8, Sendable, Hashable {
        /// With the suffix of the push type behind it (docs/push-services.md §2.4).
        case suffixedByType
        /// As it stands: the client named the whole topic, as deployed ones do (docs/conformance/zulip.md).
        case asNamed
    }

    /// The device token as it goes into the path: hex digits, as registered.
    package var token: Secret
    /// The app's bundle id without suffix, or with ``TopicForm/asNamed`` the topic itself.
    package var bundle: String
    package var topicForm: TopicForm
    package var pushType: APNsPushType
    /// 10, 5 or 1.
    package var priority: UInt8
    /// `apns-expiration`, only where the protocol's sheet gives one.
    package var expiration: UnixTime?
    /// At most 64 bytes.
    package var collapseID: Secret?
    /// The JSON body.
    package var payload: Secret

    package init(
        token: Secret, bundle: String, topicForm: TopicForm = .suffixedByType, pushType: APNsPushType,
        priority: UInt8, expiration: UnixTime? = nil, collapseID: Secret? = nil, payload: Secret
    ) {
        self.token = token
        self.bundle = bundle
        self.topicForm = topicForm
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
    }

    /// `apns-topic`.
    package var topic: String {
        switch topicForm {
        case .suffixedByType: bundle + pushType.topicSuffix
        case .asNamed: bundle
        }
    }

    /// Whether it is for PushKit, by its type or by the topic that the client named.
    package var isVoIP: Bool { pushType == .voip || topic.hasSuffix(APNsPushType.voip.topicSuffix) }

    /// The bundle id of the app whose credentials send this: a topic that was named whole may have a push
    /// type's suffix, which no configured bundle has.
    package var app: String {
        guard topicForm == .asNamed else { return bundle }
        let suffixes = APNsPushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty && bundle.hasSuffix($0) }
        // `.voip` ends no other suffix, and none of them ends in another.
        return String(bundle.dropLast(suffixes.map(\.utf8.count).max() ?? 0))
    }
}

/// What FCM is asked to deliver: a data message.
package struct FCMMessage: Sendable {
    package enum Priority: UInt8, Sendable { case high, normal }

    /// Registration token or Firebase installation id; the lane's configuration tells which
    /// (docs/push-services.md §4.2).
    package var address: Secret
    package var priority: Priority
    /// `android.ttl`, only where the protocol's sheet gives one; 0 to 28 days.
    package var ttl: Duration?
    package var collapseKey: Secret?
    /// The `data` object as JSON text: string values only.
    package var data: Secret

    package init(
        address: Secret, priority: Priority, ttl: Duration? = nil, collapseKey: Secret? = nil, data: Secret
    ) {
        self.address = address
        self.priority = priority
        self.ttl = ttl
        self.collapseKey = collapseKey
        self.data = data
    }
}

/// The message for one kind of push service.
package enum ProviderMessage: Sendable {
    case apns(APNsMessage)
    case fcm(FCMMessage)

    package var kind: ProviderKind {
        switch self {
        case .apns: .apns
        case .fcm: .fcm
        }
    }

    /// The device token or address.
    package var address: Secret {
        switch self {
        case .apns(let message): message.token
        case .fcm(let message): message.address
        }
    }
}

/// What a relay role yields: one notification for one device, authorised and sealed by its origin.
package struct Push: Sendable {
    package var message: ProviderMessage
    package var pushClass: PushClass
    /// Who asked; rounds are taken over origins and limits count by them. Never logged.
    package var origin: Secret
    /// The registration that feedback expires.
    package var record: RecordKey?
    /// When the relay accepted that registration, by our clock.
    package var touchedAt: UnixTime
    /// Until when the relay owes this push.
    package var custodyEnds: UnixTime
    /// What makes a repeat recognisable: the address and the ciphertext. `nil`: repeats are not looked for.
    package var repeatIdentity: Secret?

    package init(
        message: ProviderMessage, pushClass: PushClass, origin: Secret, record: RecordKey?,
        touchedAt: UnixTime,
        custodyEnds: UnixTime, repeatIdentity: Secret?
    ) {
        self.message = message
        self.pushClass = pushClass
        self.origin = origin
        self.record = record
        self.touchedAt = touchedAt
        self.custodyEnds = custodyEnds
        self.repeatIdentity = repeatIdentity
    }
}

/// A push that the relay owes.
package struct OwedPush: Sendable {
    package let id: PushID
    /// The engine's own handle for the row; means nothing outside the engine that gave it.
    package let row: Int64
    package var lane: LaneName
    package let pushClass: PushClass
    /// Keyed digest of instance and origin.
    package let origin: Digest16
    /// Keyed digest of the registration's key.
    package let record: Digest16?
    package let touchedAt: UnixTime
    package var notBefore: UnixTime
    package var custodyEnds: UnixTime
    /// Attempts made so far.
    package var attempt: Int
    package let epoch: Int64
    package let mark: Digest16?
    package let instance: ConfiguredName
    package let message: ProviderMessage
    /// Whether a row of a store stands behind it.
    package let custody: Custody

    package init(
        id: PushID, row: Int64, lane: LaneName, pushClass: PushClass, origin: Digest16, record: Digest16?,
        touchedAt: UnixTime, notBefore: UnixTime, custodyEnds: UnixTime, attempt: Int, epoch: Int64,
        mark: Digest16?, instance: ConfiguredName, message: ProviderMessage
    ) {
        self.id = id
        self.row = row
        self.lane = lane
        self.pushClass = pushClass
        self.origin = origin
        self.record = record
        self.touchedAt = touchedAt
        self.notBefore = notBefore
        self.custodyEnds = custodyEnds
        self.attempt = attempt
        self.epoch = epoch
        self.mark = mark
        self.instance = instance
        self.message = message
        custody = .durable
    }

    /// A push that stands in memory only: no row, no mark, no registration.
    ///
    /// - Parameter origin: whose turn it takes in the rounds of a lane; names nobody.
    package init(
        volatile push: VolatilePush, id: PushID, lane: LaneName, origin: Digest16, notBefore: UnixTime,
        instance: ConfiguredName
    ) {
        self.id = id
        row = 0
        self.lane = lane
        pushClass = push.pushClass
        self.origin = origin
        record = nil
        touchedAt = .distantPast
        self.notBefore = notBefore
        custodyEnds = push.custodyEnds
        attempt = 0
        epoch = 0
        mark = nil
        self.instance = instance
        message = push.message
        custody = .volatile
    }
}
