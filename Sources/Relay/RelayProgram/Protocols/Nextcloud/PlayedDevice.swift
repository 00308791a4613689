import NextcloudPush
import PushModel
import WireFormats

/// A device that the command line plays, and what it keeps between two commands: a file of its own, for it
/// holds an app password and the key that opens its notifications.
struct PlayedDevice: KitOwner {
    /// Apps that it can stand for: what they call themselves, and what their tokens look like.
    enum Kind: String, CaseIterable {
        case talkIOS = "talk-ios"
        case filesIOS = "files-ios"
        case talkAndroid = "talk-android"
        case filesAndroid = "files-android"

        /// All of them, as a sentence lists them.
        static var words: String { allCases.map(\.rawValue).listed("or") }

        var userAgent: String {
            switch self {
            case .talkIOS: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0"
            case .filesIOS: "Mozilla/5.0 (iOS) Nextcloud-iOS/6.6.1"
            case .talkAndroid: "Mozilla/5.0 (Android) Nextcloud-Talk v20.1.0"
            case .filesAndroid: "Mozilla/5.0 (Android) Nextcloud-android/3.31.0"
            }
        }

        var isApple: Bool { self == .talkIOS || self == .filesIOS }
        var takesCalls: Bool { self == .talkIOS }

        /// A token that no push service has given out.
        func inventToken(_ world: World) -> Secret {
            guard takesCalls else { return world.inventToken(isApple: isApple) }
            return Secret("\(world.inventAppleToken()) \(world.inventAppleToken())".utf8)
        }
    }

    /// A file of this kind has some 4 KiB.
    static let limitBytes = 64 << 10
    static let noun = "device"

    let file: HeldFile
    var kind: Kind
    var server: String
    var user: String
    var login: String
    var appPassword: Secret
    /// The push proxy's URL.
    var relay: String
    /// As a push service would have given it.
    var token: Secret
    var kept: Secret?

    /// The device as the library has it.
    ///
    /// - Throws: `CommandFailure` where the options or the file make none.
    func device() throws(CommandFailure) -> NextcloudDevice {
        let login = NextcloudLogin(
            serverURL: server, userID: user, loginName: login, appPassword: appPassword, proxyServer: relay,
            userAgent: kind.userAgent, voip: kind.takesCalls ? .strict : .none)
        return try orFail { () throws(DeviceError) in try NextcloudDevice(login, keeping: kept) }
    }

    /// Tells it the token: of an app with calls two, with a blank between them.
    ///
    /// - Throws: `CommandFailure` for what no push service gives out.
    func tell(_ device: inout NextcloudDevice) throws(CommandFailure) {
        try orFail { () throws(DeviceError) in
            let words = token.word.split(separator: " ", maxSplits: 1)
            guard kind.isApple, let alert = words.first else {
                return try device.use(token: .fcm(token.word))
            }
            let calls = try words.dropFirst().first.map { (hex) throws(DeviceError) in
                try DeviceToken.apns(hex: hex)
            }
            try device.use(token: .apns(hex: alert), calls: calls)
        }
    }

    // MARK: The file

    init?(_ row: KitObject, _ file: HeldFile) {
        guard let kind: Kind = row.word("kind"), let server = row.text("server"),
            let user = row.text("user"), let login = row.text("login"), let relay = row.text("relay"),
            let appPassword = row["app_password"], let token = row["token"]
        else { return nil }
        self.init(
            kind, server: server, user: user, login: login, appPassword: appPassword, relay: relay,
            token: token, file)
        kept = row["device"]
    }

    init(
        _ kind: Kind, server: String, user: String, login: String, appPassword: Secret, relay: String,
        token: Secret, _ file: HeldFile
    ) {
        (self.kind, self.server, self.user, self.login) = (kind, server, user, login)
        (self.appPassword, self.relay, self.token, self.file) = (appPassword, relay, token, file)
    }

    var row: KitObject {
        [
            "kind": kind.rawValue, "server": server, "user": user, "login": login, "relay": relay,
            "app_password": appPassword, "token": token, "device": kept
        ]
    }
}

extension NextcloudDevice: KitTalker {}
