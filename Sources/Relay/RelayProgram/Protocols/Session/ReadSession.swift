import PushModel
import SessionPush
import WireFormats

extension InstanceReader {
    /// Reads the keys of a Session instance.
    func session() -> SessionSettings? {
        let key = cursor.file(
            "onion_key", .onionKey,
            orElse: "Name the onion key's file; sealbell keys new session makes one.")
        let settings = SessionSettings(
            services: services(), onionKeyFile: key ?? "", oxend: oxend(), oxendKey: oxendKey(),
            policy: SessionPolicy(
                metadata: cursor.choice("metadata", default: .json),
                fcmHigh: cursor.choice("fcm_high", default: .messages),
                takesSubkeys: cursor.flag("subkeys", default: false)),
            hasPlainHTTP: cursor.flag("plain_http", default: true))
        return key == nil ? nil : settings
    }

    // MARK: oxend

    private func oxend() -> OxendAddress? {
        // The sandbox has one of its own.
        guard cursor.node["oxend"] != nil || !context.isSandbox else { return nil }
        guard cursor.node["oxend"] != nil else {
            cursor.missing("oxend", "Say where oxend listens: oxend: \"ipc:///var/lib/oxen/oxend.sock\".")
            return nil
        }
        let address = cursor.parsed(
            "oxend", OxendAddress.init,
            "An address such as ipc:///var/lib/oxen/oxend.sock or tcp://127.0.0.1:22029.")
        if let address, !address.isOnThisMachine, cursor.node["oxend_key"] == nil {
            cursor.fault(
                .conflict, "oxend",
                "In the clear only to this machine, because whoever answers chooses the storage nodes: set "
                    + "oxend_key.")
        }
        return address
    }

    private func oxendKey() -> String? {
        let key = cursor.parsed(
            "oxend_key",
            { $0.utf8.count == 64 && $0.utf8.allSatisfy { Hex.value(ofDigit: $0) != nil } ? $0 : nil },
            "oxend's X25519 public key: 64 hexadecimal digits.")
        if cursor.node["oxend_key"] != nil, cursor.node["oxend"] == nil {
            cursor.fault(.conflict, "oxend_key", "The key of which oxend? Set oxend.")
        }
        return key
    }

    // MARK: Services

    private typealias Service = SessionService
    private static let spoken = Service.allCases.filter { $0 != .huawei }

    private func services() -> [Service: ConfiguredName] {
        guard cursor.node["services"] != nil else { return ownServices() }
        guard let entries = cursor.cursor("services", keys: nil) else { return [:] }
        var services: [Service: ConfiguredName] = [:]
        for entry in entries.named() {
            let word = entry.name.text
            guard let service = Self.spoken.first(where: { $0.rawValue == word }) else {
                entries.fault(.badValue, word, Self.unknown(word))
                continue
            }
            guard let text = entries.text(word), let app = ownApp(named: text) else { continue }
            guard serves(app, service) else {
                entries.fault(.conflict, word, Self.unserved(app, service))
                continue
            }
            if service.isApple, bundles(of: app).count > 1 {
                entries.fault(.conflict, word, Self.severalBundles(app))
            }
            services[service] = app
        }
        return services
    }

    private static func unknown(_ word: String) -> String {
        if word == Service.huawei.rawValue {
            return "This version does not push through Huawei; clients that name it are refused."
        }
        let words = spoken.map(\.rawValue)
        let near = nearest(word, among: words).map { " Did you mean \($0)?" } ?? ""
        return "One of \(words.joined(separator: ", ")).\(near)"
    }

    private static func unserved(_ app: ConfiguredName, _ service: Service) -> String {
        service.isApple
            ? "The app \(app) has no apns, or another environment than \(service.rawValue) stands for."
            : "The app \(app) has no fcm."
    }

    private static func severalBundles(_ app: ConfiguredName) -> String {
        "The app \(app) has several bundle ids, and a subscription names none: make an app of each."
    }

    /// Those that the apps have, where no two have the same.
    private func ownServices() -> [Service: ConfiguredName] {
        var services: [Service: ConfiguredName] = [:]
        for service in Self.spoken {
            let able = apps.filter { serves($0, service) }
            guard able.count <= 1 else {
                cursor.missing(
                    "services",
                    "Several apps could serve \(service.rawValue): say which, such as services: { "
                        + "\(service.rawValue): \(able[0]) }.")
                return [:]
            }
            guard let app = able.first else { continue }
            services[service] = app
        }
        for app in Set([services[.apns], services[.apnsSandbox]].compactMap(\.self))
        where bundles(of: app).count > 1 {
            cursor.fault(.conflict, "apps", Self.severalBundles(app))
        }
        return services
    }

    /// Whether an app can send what is subscribed with that word, which says the environment too.
    private func serves(_ app: ConfiguredName, _ service: Service) -> Bool {
        guard service.isApple else { return node(of: app, FCMService.word) != nil }
        guard let apns = node(of: app, APNsService.word) else { return false }
        guard case .scalar(let text)? = apns["environment"]?.value else { return service == .apns }
        switch APNsSettings.Choice(rawValue: text) {
        case .production: return service == .apns
        case .sandbox: return service == .apnsSandbox
        // Another word is a fault of the app's own.
        case .learn, nil: return true
        }
    }
}
