public import PushModel

/// How a device stands with those who send to it: for the app's settings page.
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
            case .wait: "Setting up notifications takes longer than usual."
            case .retrying: "Notifications are not set up yet. The app tries again by itself."
            case .giveToken: "Allow notifications in the system's settings."
            case .updateApp: "Update the app to have notifications."
            case .logInAgain: "Log in again to have notifications."
            case .tellAdmin: "The server refuses notifications for this phone. Tell its administrator."
            case .unsupported: "This server has no encrypted notifications that this app can use."
            }
        }
    }

    /// What they have of this phone.
    public let state: State
    /// Since when it has been that; `nil` before anything was asked.
    public let since: UnixTime?
    /// The protocol's or the server's own code, at most 64 characters of `A` to `Z`, `0` to `9` and `_`, or
    /// letters; `nil`: there is none. For whoever looks into it, not for users.
    public let detail: String?
    /// Whether to say nothing yet: it is being seen to, and the last change is less than five minutes old.
    public let isQuiet: Bool
    /// What the user can do.
    public let advice: Advice

    package init(state: State, since: UnixTime?, detail: String?, isQuiet: Bool, advice: Advice) {
        (self.state, self.since, self.detail) = (state, since, detail)
        (self.isQuiet, self.advice) = (isQuiet, advice)
    }
}
