/// All that the model knows of FCM.
extension PushService {
    package static let fcm = PushService(named: "fcm")
}

extension ProviderMessage {
    package static func fcm(_ message: consuming FCMMessage) -> ProviderMessage { ProviderMessage(message) }
    /// `nil` when it is for another service.
    package var fcm: FCMMessage? { message() }
}

/// What FCM is asked to deliver: a data message.
package struct FCMMessage: Sendable {
    package enum Priority: UInt8, Sendable { case high, normal }

    /// Registration token or Firebase installation id; the lane's configuration tells which
    /// (docs/push-services.md §4.2).
    package var address: Secret
    /// The app that it is for, where the client said so; `nil`: the instance's app for FCM.
    package var app: ConfiguredName?
    package var priority: Priority
    /// `android.ttl`, only where the protocol's sheet gives one; 0 to 28 days.
    package var ttl: Duration?
    package var collapseKey: Secret?
    /// The `data` object as JSON text: string values only.
    package var data: Secret
    /// What the phone itself shows, without a title: one of a protocol's own fixed texts. `nil`: the app
    /// shows what it makes of the data.
    package var notice: String?

    package init(
        address: Secret, app: ConfiguredName? = nil, priority: Priority, ttl: Duration? = nil,
        collapseKey: Secret? = nil, data: Secret, notice: String? = nil
    ) {
        self.notice = notice
        self.address = address
        self.app = app
        self.priority = priority
        self.ttl = ttl
        self.collapseKey = collapseKey
        self.data = data
    }
}

extension FCMMessage: ServiceMessage {
    package static let service = PushService.fcm
    package static let reasons: [Reason] = [
        .unregisteredFCM, .invalidArgument, .invalidRegistrationToken, .senderIdMismatch, .quotaExceeded,
        .deviceQuotaExceeded, .rateLimitExceeded, .unavailable, .internalFCM, .thirdPartyAuthError,
        .unauthenticated, .permissionDenied, .notFound
    ]

    package var bytes: Int { data.count + address.count }

    /// Tags of the stored form: of a message that names no app, and of one whose app's name is the first
    /// field.
    private enum Tag {
        static let plain: UInt8 = 2
        static let withApp: UInt8 = 5
        /// The notice, and the app's name or nothing, are the first two fields.
        static let withNotice: UInt8 = 6
    }

    package static let storedTags = [Tag.plain, Tag.withApp, Tag.withNotice]

    package var storedSize: Int {
        let names =
            notice.map { StoredSize.of($0) + StoredSize.of(app?.text ?? "") }
            ?? app.map { StoredSize.of($0.text) } ?? 0
        return 2 * StoredSize.byte + names + StoredSize.of(address) + StoredSize.word
            + StoredSize.of(optional: collapseKey) + StoredSize.of(data)
    }

    package func write(to writer: inout StoredWriter) {
        if let notice {
            writer.put(Tag.withNotice)
            writer.put(notice)
            writer.put(app?.text ?? "")
        } else {
            writer.put(app == nil ? Tag.plain : Tag.withApp)
            if let app { writer.put(app.text) }
        }
        writer.put(address)
        writer.put(priority.rawValue)
        writer.put(ttl?.wholeMilliseconds)
        writer.put(collapseKey)
        writer.put(data)
    }

    package init?(tag: UInt8, from reader: inout StoredReader) {
        var app: ConfiguredName?
        var notice: String?
        if tag == Tag.withNotice {
            guard let text = reader.text(), let name = reader.text() else { return nil }
            notice = text
            app = ConfiguredName(name)
            guard name.isEmpty || app != nil else { return nil }
        }
        if tag == Tag.withApp {
            guard let name = reader.text().flatMap({ ConfiguredName($0) }) else { return nil }
            app = name
        }
        guard let address = reader.secret(),
            let priority = reader.byte().flatMap({ Priority(rawValue: $0) }),
            let ttl = reader.optionalWord(), let collapseKey = reader.optionalSecret(),
            let data = reader.secret()
        else { return nil }
        self.init(
            address: address, app: app, priority: priority, ttl: ttl.map { .milliseconds($0) },
            collapseKey: collapseKey, data: data, notice: notice)
    }
}

/// How an app is set up for FCM.
package struct FCMOutlet: ServiceOutlet {
    package static let service = PushService.fcm

    package let environment = EnvironmentPolicy.fixed(.production)
    /// Whether it sends what names no app: one of an instance does.
    package let isDefault: Bool

    package init(isDefault: Bool) { self.isDefault = isDefault }

    package static func choose(for message: ProviderMessage, among apps: [AppOutlet<FCMOutlet>]) -> Int? {
        guard let message = message.fcm else { return nil }
        guard let app = message.app else { return apps.firstIndex { $0.outlet.isDefault } }
        return apps.firstIndex { $0.app == app }
    }
}

/// Google's words (docs/push-services.md §4.4).
extension Reason {
    package static let unregisteredFCM = Reason("UNREGISTERED", .provesCredential)
    package static let invalidArgument = Reason("INVALID_ARGUMENT")
    package static let invalidRegistrationToken = Reason("INVALID_REGISTRATION_TOKEN")
    package static let senderIdMismatch = Reason("SENDER_ID_MISMATCH", [.blamesTarget, .provesCredential])
    /// Google's word for the quota of a device, a topic or the project, where nothing says of which: both it
    /// may be.
    package static let quotaExceeded = Reason("QUOTA_EXCEEDED", [.asksForTime, .limitsAddress])
    /// Ours for `QUOTA_EXCEEDED` where the answer speaks of the device.
    package static let deviceQuotaExceeded = Reason("DEVICE_QUOTA_EXCEEDED", .limitsAddress)
    /// The project's quota, or an overload.
    package static let rateLimitExceeded = Reason("RATE_LIMIT_EXCEEDED", .asksForTime)
    package static let unavailable = Reason("UNAVAILABLE", .asksForTime)
    package static let internalFCM = Reason("INTERNAL", .asksForTime)
    package static let thirdPartyAuthError = Reason("THIRD_PARTY_AUTH_ERROR")
    package static let unauthenticated = Reason("UNAUTHENTICATED")
    package static let permissionDenied = Reason("PERMISSION_DENIED")
    package static let notFound = Reason("NOT_FOUND")
}
