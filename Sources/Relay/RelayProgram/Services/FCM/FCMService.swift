import FCM
import PushModel

/// FCM as an app of the configuration has it.
enum FCMService: HostedService {
    static let word = "fcm"
    static let title = "FCM"
    static let keys = ["service_account", "address", "url", "ca", "token_url"]
    static let message: any ServiceMessage.Type = FCMMessage.self
    static let sandboxKeys = ["service_account: fcm.json"]
    static let setup = SetupPart(
        questions: [
            SetupPart.Question(
                key: "service_account", words: "File of the service account (JSON)", form: .file("fcm.json"),
                standard: "fcm.json")
        ],
        next: [
            "At Google (console.firebase.google.com): the project of that account has the Firebase Cloud "
                + "Messaging API (V1) enabled, and your Android app."
        ])
    static let detour: String? = "for FCM, the way to Google's token service"

    static func sandboxPeer(
        for apps: [AppConfiguration], on context: SandboxContext
    ) async throws -> any ServicePeer {
        try await FCMSandboxPeer(for: apps, on: context)
    }

    static func read(_ cursor: MappingCursor) -> FCMSettings? {
        let account = cursor.file(
            "service_account", .serviceAccount,
            orElse: "Name the service account's JSON file, from Firebase's project settings.")
        let address = cursor.choice("address", default: FCMSettings.Address.auto)
        let url = cursor.parsed(
            "url", HTTPSBase.init, "The https:// address of a host, with a port if need be and no path.")
        let tokenURL = cursor.parsed("token_url", HTTPSURL.init, "An https:// address.")
        let ca = cursor.file("ca", .authority)
        guard let account else { return nil }
        return FCMSettings(
            serviceAccountFile: account, address: address, url: url, caFile: ca, tokenURL: tokenURL)
    }
}

extension FileContent {
    static let serviceAccount = FileContent(words: "a service account", inSandbox: .made) { bytes, _ in
        do throws(FCMError) {
            _ = try FCMServiceAccount(file: bytes)
            return nil
        } catch {
            return error.coded
        }
    }
}

extension InstanceReader {
    private func hasFCM(_ app: ConfiguredName) -> Bool { node(of: app, FCMService.word) != nil }

    /// The app of FCM registrations: the one named, else the only one with FCM.
    func fcmApp() -> ConfiguredName? {
        let capable = apps.filter { hasFCM($0) }
        guard let text = cursor.text("fcm_app") else {
            if cursor.node["fcm_app"] == nil, capable.count > 1 {
                cursor.missing(
                    "fcm_app", "Several apps have FCM and a registration names none: say which one it is.")
            }
            return capable.first
        }
        guard let name = ownApp(named: text) else { return nil }
        if !hasFCM(name) { cursor.fault(.conflict, "fcm_app", "This app has no fcm section.") }
        return name
    }
}
