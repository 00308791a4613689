import PushModel

/// Makes one valid value of a tree of texts, or finds everything that keeps it from being one.
struct ConfigurationReader {
    let root: ConfigurationNode
    let context: ReadingContext
    let facts: ProcessFacts
    let vocabulary: Vocabulary
    /// Names that stand in the tree, whether or not what they name is sound: a broken app is one fault, not
    /// two.
    let appNames: [ConfiguredName]
    let instanceNames: [ConfiguredName]
    /// Instances that stand in a section of their own, by their listeners' names too.
    let sectionNames: [ConfiguredName]

    init(
        _ root: ConfigurationNode, _ context: ReadingContext, _ facts: ProcessFacts,
        _ vocabulary: Vocabulary
    ) {
        self.root = root
        self.context = context
        self.facts = facts
        self.vocabulary = vocabulary
        appNames = (root["apps"]?.keys ?? []).compactMap(ConfiguredName.init)
        instanceNames = (root["instances"]?.keys ?? []).compactMap(ConfiguredName.init)
        sectionNames = vocabulary.sections.map(\.word).filter { root[$0] != nil }.compactMap(
            ConfiguredName.init)
    }

    /// - Parameter state: the state directory, already settled (``ConfigurationLoader``).
    /// - Parameter file: the file's path, for messages.
    func read(state: String, file: String?) throws(ConfigurationError) -> RelayConfiguration {
        guard let cursor = MappingCursor(root, ConfigurationPath(), keys: ConfigurationKeys.root, context)
        else {
            throw ConfigurationError(context.faults)
        }
        let store = store(cursor, state: state)
        let apps = apps(cursor)
        let instances = instances(cursor) + sections(cursor)
        let listeners = listeners(cursor, instances: instanceNames)
        let log = log(cursor)
        let proxy = proxy(cursor)
        let limits = limits(cursor)
        let alerts = alerts(cursor)
        let history = cursor.choice("history", default: HistorySwitch.on)
        if root["instances"] == nil, sectionNames.isEmpty {
            cursor.missing("instances", "Without an instance there is nothing to serve: add one.")
        }
        if root["apps"] == nil, !needsNoApps, root["instances"] != nil || sectionNames.isEmpty {
            cursor.missing("apps", "Without an app there is nowhere to push to: add one.")
        }
        checkListeners(listeners, instances)
        checkUse(apps, instances, listeners)
        for kind in vocabulary.sections {
            guard let one = instances.first(where: { $0.name.text == kind.word }),
                let lack = kind.lack(one.settings, instances)
            else { continue }
            context.warn(.originWithoutRelay, ConfigurationPath([kind.word]), lack)
        }
        guard context.faults.isEmpty, let store else { throw ConfigurationError(inOrder(context.faults)) }
        return RelayConfiguration(
            file: file, isSandbox: context.isSandbox, state: state, store: store,
            listeners: listeners.sorted { $0.name < $1.name }, log: log,
            apps: apps.sorted { $0.name < $1.name },
            instances: instances.sorted { $0.name < $1.name }, proxy: proxy, limits: limits, alerts: alerts,
            keepsHistory: history == .on,
            warnings: context.warnings, files: context.files)
    }

    /// The file's order, then what came from elsewhere.
    private func inOrder(_ faults: [ConfigurationFault]) -> [ConfigurationFault] {
        faults.enumerated().sorted { left, right in
            let lines = (left.element.line ?? .max, right.element.line ?? .max)
            return lines.0 == lines.1 ? left.offset < right.offset : lines.0 < lines.1
        }.map(\.element)
    }

    /// Two listeners on one address, and two instances that answer to the same paths on one listener.
    private func checkListeners(_ listeners: [ListenerConfiguration], _ instances: [InstanceConfiguration]) {
        for (index, listener) in listeners.enumerated() {
            let path = ConfigurationPath(["listeners", listener.name.text])
            let source = root["listeners"]?[listener.name.text]?.source ?? .builtIn
            if let other = listeners[..<index].first(where: { $0.bind.clashes(with: listener.bind) }) {
                context.fault(
                    .conflict, path / "bind",
                    root["listeners"]?[listener.name.text]?["bind"]?.source ?? source,
                    "The listener \(other.name) takes this address already.")
            }
            let served = instances.filter { listener.serves.contains($0.name) }
            for (position, instance) in served.enumerated() {
                if let other = served[..<position].first(where: { $0.clashes(with: instance) }) {
                    context.fault(
                        .conflict, path / "serves",
                        root["listeners"]?[listener.name.text]?["serves"]?.source ?? source,
                        "The instances \(other.name) and \(instance.name) answer to the same paths; "
                            + "give one of them a listener of its own.")
                }
            }
        }
        if !listeners.contains(where: \.isAdmin) {
            context.warn(
                .noAdminListener, ConfigurationPath(["listeners"]),
                "There is no admin listener: metrics, health and the operator's commands cannot be reached.")
        }
    }

    /// Instances that no listener serves, apps that no instance serves.
    private func checkUse(
        _ apps: [AppConfiguration], _ instances: [InstanceConfiguration], _ listeners: [ListenerConfiguration]
    ) {
        for instance in instances {
            let isServed = listeners.contains { $0.serves.contains(instance.name) }
            guard type(of: instance.settings).isServed else {
                if isServed { servesInVain(instance) }
                continue
            }
            guard !isServed else { continue }
            context.fault(
                .conflict, ConfigurationPath(["instances", instance.name.text]),
                root["instances"]?[instance.name.text]?.source ?? .builtIn,
                "No listener serves this instance; add it to the serves of one.")
        }
        for app in apps where !instances.contains(where: { $0.apps.contains(app.name) }) {
            context.warn(
                .appUnused, ConfigurationPath(["apps", app.name.text]), "No instance serves this app.")
        }
    }

    private func servesInVain(_ instance: InstanceConfiguration) {
        for listener in root["listeners"]?.keys ?? [] {
            guard let serves = root["listeners"]?[listener]?["serves"], case .list(let items) = serves.value,
                items.contains(where: { $0.value == .scalar(instance.name.text) })
            else { continue }
            context.fault(
                .conflict, ConfigurationPath(["listeners", listener, "serves"]), serves.source,
                type(of: instance.settings).unservedSentence)
        }
    }
}
