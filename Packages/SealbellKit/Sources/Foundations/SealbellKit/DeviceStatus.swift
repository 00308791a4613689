public import PushModel

/// The state of a device at those who send to it, for the app's settings page.
public struct DeviceStatus: Sendable, Hashable {
    /// What they have of this phone.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// Nothing.
        case none
        /// Something that is not confirmed yet.
        case pending
        /// A registration that stands.
        case active
        /// A registration that was refused.
        case failed
    }

    /// What the user can do. The raw values are frozen.
    public enum Advice: String, Sendable, Hashable, CaseIterable {
        /// Nothing to do.
        case none
        /// It takes longer than usual.
        case wait
        /// The device tries again by itself.
        case retrying
        /// The system has given no device token.
        case giveToken = "give_token"
        /// The relay does not take this version of the app.
        case updateApp = "update_app"
        /// The server does not take the login any more.
        case logInAgain = "log_in_again"
        /// The server refuses to set notifications up.
        case tellAdmin = "tell_admin"
        /// The server has no encrypted notifications of a kind that the app speaks.
        case unsupported

        /// What to tell the user, in English; empty where there is nothing to say.
        public var sentence: String {
            switch self {
            case .none: ""
            case .wait:
                "Notifications are not set up yet. Your server has not heard from its push service; this "
                    + "usually passes by itself."
            case .retrying:
                "Notifications stopped working for this account. The app is setting them up again."
            case .giveToken: "Your phone gives this app no notifications. Allow them in its settings."
            case .updateApp:
                "This version of the app can no longer receive notifications. Please update the app."
            case .logInAgain: "Your login is no longer valid. Log in again to receive notifications."
            case .tellAdmin:
                "Your server refused to set up notifications. Please tell its administrator, and give them "
                    + "the code shown here."
            case .unsupported: "Your server cannot send encrypted notifications."
            }
        }
    }

    /// What they have of this phone.
    public let state: State
    /// Since when it has been that; `nil` before anything was asked.
    public let since: UnixTime?
    /// The protocol's or the server's own code, at most 64 characters of `A` to `Z`, `0` to `9` and `_`, or
    /// letters; `nil`: there is none. For support, not for users.
    public let detail: String?
    /// Whether to say nothing yet: the device is working on it, and the last change is less than five minutes
    /// old.
    public let isQuiet: Bool
    /// What the user can do.
    public let advice: Advice

    package init(state: State, since: UnixTime?, detail: String?, isQuiet: Bool, advice: Advice) {
        (self.state, self.since, self.detail) = (state, since, detail)
        (self.isQuiet, self.advice) = (isQuiet, advice)
    }
}
