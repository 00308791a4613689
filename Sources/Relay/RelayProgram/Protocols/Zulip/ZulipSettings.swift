import AdminIngress
import Delivery
import HTTPIngress
import Primitives
import PushModel
import WireFormats
import ZulipPush

/// What the keys of a Zulip instance say.
struct ZulipSettings: Sendable, Hashable {
    /// Which app an FCM registration belongs to, because it names none; `nil` when no app has FCM.
    var fcmApp: ConfiguredName?
    /// The topic of an Apple device whose registration names no app, as the specification's own do; `nil`:
    /// such a registration is refused.
    var defaultBundle: String?
    /// The bouncer's key pairs (`BouncerKeysFile`).
    var keysFile: String
    var signUp: ZulipAdmission
    /// Whether the domain of a contact mail must have a mail exchanger.
    var mxLookup: Bool
}

/// Words of `sign_up`.
private enum SignUpWord: String, CaseIterable {
    case open
    case allowList = "allow-list"
    case invite
}

extension ZulipSettings: InstanceSettings {
    static let paths = ["/api/v1/remotes/"]

    func app(for service: PushService) -> ConfiguredName? { service == .fcm ? fcmApp : nil }

    func makeSandboxKeys() throws(CommandFailure) {
        try BouncerKeysFile.make(once: keysFile, [.generate(.live)])
    }
}

extension InstanceConfiguration {
    var zulip: ZulipSettings? { settings as? ZulipSettings }
}

extension FileContent {
    static let bouncerKeys = BouncerKeysFile.content("bouncer keys", inSandbox: .madeOnce) {
        $0.map { .publicKey(Base64.text($0.publicKey)) }
    }
}

extension InstanceReader {
    /// Reads the keys of a Zulip instance.
    func zulip() -> ZulipSettings? {
        let keys = cursor.file(
            "keys", .bouncerKeys,
            orElse: "Name the file of the bouncer's keys; sealbell keys new zulip makes one.")
        let fcmApp = fcmApp()
        let signUp = signUp()
        let mxLookup = cursor.flag("mx_lookup", default: false)
        checkBundles()
        let bundle = defaultBundle()
        return keys.map {
            ZulipSettings(
                fcmApp: fcmApp, defaultBundle: bundle, keysFile: $0, signUp: signUp, mxLookup: mxLookup)
        }
    }

    /// The bundle id that is named, else the instance's only one.
    private func defaultBundle() -> String? {
        let bundles = apps.flatMap { self.bundles(of: $0) }
        guard let text = cursor.text("default_ios_app_id") else {
            if bundles.count > 1 {
                context.warn(
                    .noDefaultBundle, cursor.path,
                    "This instance has several bundle ids and no default_ios_app_id: registrations that name "
                        + "no app are refused. Only clients after the specification's own text send such.")
            }
            return bundles.count == 1 ? bundles[0] : nil
        }
        guard bundles.contains(text.text) else {
            cursor.fault(.conflict, "default_ios_app_id", "This is no bundle id of the instance's apps.")
            return nil
        }
        return text.text
    }

    private func signUp() -> ZulipAdmission {
        let word = cursor.choice("sign_up", default: context.isSandbox ? SignUpWord.open : .invite)
        let hosts = cursor.parsedList(
            "hosts", { isHostName($0) ? $0.lowercased() : nil },
            "A host name, without https:// and without a port.")
        if word != .allowList, cursor.node["hosts"] != nil {
            cursor.fault(.conflict, "hosts", "hosts applies only with sign_up: allow-list.")
        }
        switch word {
        case .open:
            if !context.isSandbox {
                context.warn(
                    .openSignUp, cursor.path / "sign_up",
                    "Anybody who reaches this relay may sign a server up.")
            }
            return .open
        case .invite:
            return .invitation
        case .allowList:
            if cursor.node["hosts"] == nil {
                cursor.missing(
                    "hosts", "An allow-list needs hosts: the names of the servers that may sign up.")
            }
            return .allowList(Set(hosts))
        }
    }
}
