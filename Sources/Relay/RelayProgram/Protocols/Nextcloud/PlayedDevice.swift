import NextcloudPush
import PushModel
import WireFormats

/// A device that the command line plays, and what it keeps between two commands: a file of its own, for it
/// holds an app password and the key that opens its notifications.
struct PlayedDevice {
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
            guard takesCalls else { return PlayedFile.inventToken(isApple: isApple, world) }
            return Secret("\(world.inventAppleToken()) \(world.inventAppleToken())".utf8)
        }
    }

    /// A file of this kind has some 4 KiB.
    static let limitBytes = 64 << 10

    var kind: Kind
    var server: String
    var user: String
    var login: String
    var appPassword: Secret
    /// The push proxy's URL.
    var relay: String
    /// As a push service would have given it.
    var token: Secret
    /// What the device keeps; `nil`: a new one.
    var kept: Secret?

    /// The device as the library has it.
    ///
    /// - Throws: `CommandFailure` where the options or the file make none.
    func device() throws(CommandFailure) -> NextcloudDevice {
        let login = NextcloudLogin(
            serverURL: server, userID: user, loginName: login, appPassword: appPassword, proxyServer: relay,
            userAgent: kind.userAgent, voip: kind.takesCalls ? .strict : .none)
        do throws(DeviceError) { return try NextcloudDevice(login, keeping: kept) } catch {
            throw CommandFailure(.failed, error.sentence)
        }
    }

    /// Tells it the token: of an app with calls two, with a blank between them.
    ///
    /// - Throws: `CommandFailure` for what no push service gives out.
    func tell(_ device: inout NextcloudDevice) throws(CommandFailure) {
        do throws(DeviceError) {
            let words = token.word.split(separator: " ", maxSplits: 1)
            guard kind.isApple, let alert = words.first else {
                return try device.use(token: .fcm(token.word))
            }
            let calls = try words.dropFirst().first.map { (hex) throws(DeviceError) in
                try DeviceToken.apns(hex: hex)
            }
            try device.use(token: .apns(hex: alert), calls: calls)
        } catch { throw CommandFailure(.failed, error.sentence) }
    }

    // MARK: The file

    /// - Throws: `CommandFailure` that names the file.
    init(file: String) throws(CommandFailure) {
        self = try PlayedFile.read(file, limitBytes: Self.limitBytes, "device") { try PlayedDevice($0) }
    }

    private init(_ members: [String: Secret]) throws {
        func text(_ name: String) throws(FormatError) -> String {
            guard let value = members[name] else { throw FormatError(.wrongType) }
            return value.reveal { String(decoding: $0, as: UTF8.self) }
        }
        guard let kind = Kind(rawValue: try text("kind")), let password = members["app_password"],
            let token = members["token"]
        else { throw FormatError(.wrongType) }
        self.kind = kind
        server = try text("server")
        user = try text("user")
        login = try text("login")
        appPassword = password
        relay = try text("relay")
        self.token = token
        kept = members["device"]
    }

    init(
        _ kind: Kind, server: String, user: String, login: String, appPassword: Secret, relay: String,
        token: Secret
    ) {
        (self.kind, self.server, self.user, self.login) = (kind, server, user, login)
        (self.appPassword, self.relay, self.token) = (appPassword, relay, token)
    }

    /// Writes the file with what the device keeps now.
    ///
    /// - Throws: `CommandFailure` that names the file.
    mutating func keep(_ device: NextcloudDevice, _ file: String) throws(CommandFailure) {
        kept = device.kept
        try write(file)
    }

    /// Writes the file, which its owner alone may read.
    ///
    /// - Throws: `CommandFailure` that names the file.
    func write(_ file: String) throws(CommandFailure) {
        var json = JSONWriter(reserving: Self.limitBytes)
        json.beginObject()
        for (name, text) in [
            ("kind", kind.rawValue), ("server", server), ("user", user), ("login", login), ("relay", relay)
        ] {
            json.key(name)
            json.string(text)
        }
        for (name, secret) in [
            ("app_password", appPassword), ("token", token), ("device", kept)
        ] as [(String, Secret?)] {
            guard let secret else { continue }
            json.key(name)
            secret.reveal { json.string(utf8: $0) }
        }
        json.endObject()
        try replaceFile(file, json.takeSecret())
    }
}
