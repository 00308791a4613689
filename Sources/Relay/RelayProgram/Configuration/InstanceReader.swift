import PushModel

/// What a protocol reads the keys of one instance with.
struct InstanceReader {
    let name: ConfiguredName
    /// Apps that the instance serves; none after a fault, or where it needs none.
    let apps: [ConfiguredName]
    let cursor: MappingCursor
    /// The file's `apps`.
    let appNodes: ConfigurationNode?
    /// Names of all apps, whether or not they are sound.
    let appNames: [ConfiguredName]

    var context: ReadingContext { cursor.context }

    /// What the file says below a push service's word in an app.
    func node(of app: ConfiguredName, _ service: String) -> ConfigurationNode? {
        appNodes?[app.text]?[service]
    }

    /// The app that a text names; a fault when there is none.
    func app(named text: LocatedText) -> ConfiguredName? {
        context.references([text], to: appNames, "app").first
    }

    /// The same of an app that the instance serves.
    func ownApp(named text: LocatedText) -> ConfiguredName? {
        guard let app = app(named: text) else { return nil }
        if apps.contains(app) { return app }
        context.fault(
            .conflict, text.path, text.source, "This app is not among the instance's apps; add it there.")
        return nil
    }
}
