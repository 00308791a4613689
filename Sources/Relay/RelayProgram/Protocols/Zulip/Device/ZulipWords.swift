import PushModel
import ZulipPush

/// Sentences of docs/guides/zulip.md, which apps translate.
enum ZulipWords {
    static func sentence(_ status: DeviceStatus) -> String {
        sentence(status.advice, isActive: status.state == .active)
    }

    static func sentence(_ advice: DeviceStatus.Advice, isActive: Bool) -> String {
        guard advice == .none else { return advice.sentence }
        return isActive ? "Notifications are set up." : "Notifications are being set up."
    }

    /// Why an account has no encrypted notifications.
    static func sentence(_ route: ZulipRoute) -> String? {
        switch route {
        case .encrypted: nil
        case .legacy:
            "The server has no encrypted notifications of a kind that this phone speaks. An app may register "
                + "without encryption now; this command does not."
        case .refused:
            "You will not receive notifications from this server: it cannot encrypt them, and your settings "
                + "require that."
        }
    }

    /// What a screen would show, in one line.
    static func text(_ notification: ZulipNotification?) -> String {
        switch notification?.body {
        case .message(let message):
            "message \(message.id), \(printable(message.senderName)): \(printable(message.content))"
        case .remove(let ids):
            "to be taken off the screen: message \(ids.map(String.init).joined(separator: ", "))"
        case .test: "test notification"
        case nil: "of a type that this version does not know"
        }
    }

    /// A sender's text must not steer the terminal.
    private static func printable(_ text: String) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: line.append(" ")
            default: line.append(scalar)
            }
        }
        return String(line)
    }

    /// What a device's call is for.
    enum Aim: String {
        case settings, state, events, registration, forget
        case device = "asked for a device id"
    }

    /// What a call is for, by its path.
    static func aim(of call: HTTPCall) -> Aim {
        if call.url.hasSuffix("/register_client_device") { return .device }
        if call.url.hasSuffix("/mobile_push/register") { return .registration }
        if call.url.hasSuffix("/server_settings") { return .settings }
        if call.url.hasSuffix("/api/v1/register") { return .state }
        return call.url.contains("/api/v1/events?") ? .events : .forget
    }

    static func age(_ age: Duration) -> String {
        let seconds = age.components.seconds
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7_200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3_600) h"
        default: "\(seconds / 86_400) days"
        }
    }
}
