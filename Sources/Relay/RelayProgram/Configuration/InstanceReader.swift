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
}
