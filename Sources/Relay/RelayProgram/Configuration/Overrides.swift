/// What stands above the file: `--set path=value` over `SEALBELL_…`.
///
/// A variable's name is the path in capitals with `__` between its segments; `-` and `.` of a name are
/// written `_`: `SEALBELL_APPS__ACME_CHAT__FALLBACK__TITLE` is `apps.acme-chat.fallback.title`. A list
/// is written with commas.
enum Overrides {
    /// Variables that are no keys of the file.
    static let reserved: Set<String> = ["SEALBELL_CONFIG"]
    private static let named: Set<String> = ["apps", "listeners", "instances"]

    /// Applies the environment, then each `--set` in order.
    ///
    /// - Returns: warnings about variables that name no key. They are no faults: a cluster puts
    ///    `SEALBELL_SERVICE_HOST` and the like into the environment of anyone who runs beside a service of
    ///   that name.
    static func apply(
        to root: inout ConfigurationNode, environment: [String: String], settings: [String],
        faults: inout [ConfigurationFault]
    ) -> [ConfigurationWarning] {
        var warnings: [ConfigurationWarning] = []
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix("SEALBELL_") {
            if reserved.contains(name) { continue }
            let segments = split(name.dropFirst("SEALBELL_".count))
            guard let first = segments.first, ConfigurationKeys.root.contains(first.lowercased()) else {
                warnings.append(
                    ConfigurationWarning(
                        code: .unknownEnvironment, path: ConfigurationPath([name]).text,
                        sentence: "This variable names no key of the configuration and is passed over."))
                continue
            }
            guard !segments.contains("") else {
                faults.append(
                    ConfigurationFault(
                        code: .badOverride, path: "", source: .environment(ConfigurationPath([name]).text),
                        sentence:
                            "Write SEALBELL_ and the path in capitals, with two underscores between segments."
                    ))
                continue
            }
            root.set(resolve(segments, in: root)[...], to: value, source: .environment(name))
        }
        for setting in settings {
            guard let equals = setting.firstIndex(of: "="),
                let path = ConfigurationPath(text: String(setting[..<equals]))
            else {
                faults.append(
                    ConfigurationFault(
                        code: .badOverride, path: "", source: .commandLine,
                        sentence: "Write --set path=value, as in --set log.level=debug."))
                continue
            }
            root.set(
                path.segments[...], to: String(setting[setting.index(after: equals)...]), source: .commandLine
            )
        }
        return warnings
    }

    private static func split(_ text: Substring) -> [String] {
        var segments: [String] = [""]
        var rest = text
        while let character = rest.first {
            if rest.hasPrefix("__") {
                segments.append("")
                rest = rest.dropFirst(2)
            } else {
                segments[segments.count - 1].append(character)
                rest = rest.dropFirst()
            }
        }
        return segments
    }

    /// Finds each segment among the keys that stand in the tree; a name that does not is a new one, with
    /// hyphens.
    private static func resolve(_ segments: [String], in root: ConfigurationNode) -> [String] {
        var node: ConfigurationNode? = root
        var path: [String] = []
        for (depth, segment) in segments.enumerated() {
            let plain = segment.lowercased()
            let present = node?.keys.first { fold($0) == plain }
            let isName = depth == 1 && named.contains(path[0])
            let key = present ?? (isName ? plain.replacing("_", with: "-") : plain)
            path.append(key)
            node = node?[key]
        }
        return path
    }

    private static func fold(_ key: String) -> String {
        key.lowercased().replacing("-", with: "_").replacing(".", with: "_")
    }
}
