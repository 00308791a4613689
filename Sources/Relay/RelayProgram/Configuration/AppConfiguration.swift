import PushModel

/// An app as its publisher registered it with push services.
struct AppConfiguration: Sendable {
    var name: ConfiguredName
    /// How it is set up for each of its push services, at least one, in the order of ``Hosting/services``.
    var services: [any ServiceSettings]
    /// What a device shows when it cannot open what arrived.
    var fallback: FallbackAlert
}

/// Fixed texts shown when a device cannot open a push: literal, or by keys into the app's own translations.
struct FallbackAlert: Sendable, Hashable {
    var title: String?
    var body: String?
    var titleLocKey: String?
    var locKey: String?
    var sound: String?
    var category: String?

    /// As deployed relays put it where an origin gives no words of its own.
    static let standard = FallbackAlert(title: "New notification")
}

extension AppConfiguration {
    /// How the app is set up for the service with settings of that kind.
    subscript<Settings: ServiceSettings>(_: Settings.Type) -> Settings? {
        get {
            for settings in services { if let found = settings as? Settings { return found } }
            return nil
        }
        set {
            let index = services.firstIndex { $0 is Settings }
            if let index { services.remove(at: index) }
            if let newValue { services.insert(newValue, at: index ?? services.endIndex) }
        }
    }

    var lanes: [LaneName] { services.flatMap { $0.lanes(of: name) } }
}

extension AppConfiguration: Hashable {
    static func == (left: AppConfiguration, right: AppConfiguration) -> Bool {
        left.name == right.name && left.fallback == right.fallback
            && left.services.map { AnyHashable($0) } == right.services.map { AnyHashable($0) }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(fallback)
        hasher.combine(services.map { AnyHashable($0) })
    }
}
