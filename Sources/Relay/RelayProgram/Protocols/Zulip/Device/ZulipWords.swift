import PushModel
import ZulipPush

/// Sentences of docs/guides/zulip.md, which apps translate.
enum ZulipWords {
    static func sentence(_ status: ZulipStatus) -> String {
        sentence(status.advice, isActive: status.state == .active)
    }

    static func sentence(_ advice: ZulipStatus.Advice, isActive: Bool) -> String {
        guard advice == .none else { return advice.sentence }
        return isActive ? "Notifications are set up." : "Notifications are being set up."
    }

    static func sentence(_ notice: ZulipNotice) -> String {
        switch notice {
        case .notSetUp:
            "You will not receive notifications yet: setting them up is taking longer than usual."
        case .logInAgain: "Log in again to receive notifications."
        case .serverRefuses:
            "You will not receive notifications: your server refused to set them up."
        case .updateApp: "Update the app to receive notifications."
        case .cannotEncrypt:
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

    static func call(_ kind: ZulipDeviceCall.Kind) -> String {
        switch kind {
        case .addDevice: "asked for a device id"
        case .register: "registration"
        case .forget: "forget"
        case .test: "test notification"
        }
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
