/// A notification as an origin has it: what `nid`, `app`, `subject`, `type` and `id` of a plaintext say
/// (§4.4).
public struct NextcloudNotification: Sendable, Hashable {
    /// `nid`: under this number a device fetches the details and takes the notification away again.
    public var id: Int64
    /// The app that tells something: `spreed` for Talk.
    public var app: String
    /// One line for the screen. What has no room is cut.
    public var subject: String
    /// `type`: what kind of thing it is about: `chat`, `call` or `room` of Talk.
    public var objectType: String
    /// Of Talk: the token of the conversation.
    public var objectID: String
    /// Sent even to someone who does not want to be disturbed (§4.3).
    public var isPriority: Bool

    /// Lengths are not checked here; what has no room in a plaintext is cut or refused when it is sealed.
    public init(
        id: Int64, app: String, subject: String, objectType: String, objectID: String,
        isPriority: Bool = false
    ) {
        self.id = id
        self.app = app
        self.subject = subject
        self.objectType = objectType
        self.objectID = objectID
        self.isPriority = isPriority
    }

    /// Whether an app of Talk's asks for it: Talk devices have these alone, and all other devices have them
    /// only where there is no Talk device (§4.3).
    public var isOfTalk: Bool { Self.talkApps.contains(app) }

    static let talkApps: Set<String> = ["spreed", "talk", "admin_notification_talk"]
    /// Apps whose notifications are urgent though they are not Talk's (§4.5).
    static let urgentApps: Set<String> = ["twofactor_nextcloud_notification", "phonetrack"]
}

/// How a proxy is to send a push: `priority` and `type` of an entry (§4.5).
public struct NextcloudPushKind: Sendable, Hashable {
    /// `priority` of an entry.
    public enum Priority: String, Sendable, Hashable, CaseIterable {
        /// It wakes the phone at once.
        case high
        /// The phone has it when it is awake.
        case normal
    }

    /// `type` of an entry.
    public enum Form: String, Sendable, Hashable, CaseIterable {
        /// Something to show.
        case alert
        /// A call that rings.
        case voip
        /// Something to take away.
        case background
    }

    /// `high` of Talk and of few other apps.
    public let priority: Priority
    /// `voip` of a call alone.
    public let form: Form

    /// Of a notification.
    public init(_ notification: NextcloudNotification) {
        let isCall = notification.isOfTalk && notification.objectType == "call"
        let isHigh = notification.isOfTalk || NextcloudNotification.urgentApps.contains(notification.app)
        self.init(priority: isHigh ? .high : .normal, form: isCall ? .voip : .alert)
    }

    init(priority: Priority, form: Form) {
        self.priority = priority
        self.form = form
    }

    /// Of every withdrawal.
    public static let withdrawal = NextcloudPushKind(priority: .normal, form: .background)
}
