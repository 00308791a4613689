import PushModel

/// What a reload changes while the relay runs. Pure: the wiring carries it out.
///
/// Files are read again at every reload, whether or not their paths changed: that is how certificates, keys
/// and tokens are renewed. So an empty plan still reads files.
struct ReloadPlan: Sendable, Hashable {
    enum Change: Sendable, Hashable {
        case addApp(ConfiguredName)
        case removeApp(ConfiguredName)
        /// Credentials, bundles, environment, addresses or the fallback alert.
        case changeApp(ConfiguredName)
        case addInstance(ConfiguredName)
        case removeInstance(ConfiguredName)
        /// Apps, key files, MX look-up; all that Marmot has.
        case changeInstance(ConfiguredName)
        case signUp(ConfiguredName)
        /// Which instances a listener serves.
        case serves(listener: ConfiguredName)
        case trustedProxies(listener: ConfiguredName)
        /// Other files, or TLS where there was none, or none any more.
        case tls(listener: ConfiguredName)
        case adminToken(listener: ConfiguredName)
        case log
        case limits
        case alerts
        case proxy
    }

    /// In an order that never leaves a reference dangling: additions, changes, then removals.
    let changes: [Change]

    /// Compares the configuration in force with a new one.
    ///
    /// - Throws: one fault `.needsRestart` for each thing that only a restart can change: state directory,
    ///   store, and where listeners listen. Then nothing of the new file comes into force.
    init(from old: RelayConfiguration, to new: RelayConfiguration) throws(ConfigurationError) {
        let faults = Self.restarts(old, new)
        guard faults.isEmpty else { throw ConfigurationError(faults) }
        var changes: [Change] = []
        for app in new.apps {
            guard let before = old.app(app.name) else {
                changes.append(.addApp(app.name))
                continue
            }
            if before != app { changes.append(.changeApp(app.name)) }
        }
        for instance in new.instances {
            guard let before = old.instance(instance.name) else {
                changes.append(.addInstance(instance.name))
                continue
            }
            changes += Self.changes(before, instance)
        }
        for listener in new.listeners {
            if let before = old.listener(listener.name) { changes += Self.changes(before, listener) }
        }
        if old.log != new.log { changes.append(.log) }
        if old.limits != new.limits { changes.append(.limits) }
        if old.alerts != new.alerts { changes.append(.alerts) }
        if old.proxy != new.proxy { changes.append(.proxy) }
        changes += old.instances.filter { new.instance($0.name) == nil }.map { .removeInstance($0.name) }
        changes += old.apps.filter { new.app($0.name) == nil }.map { .removeApp($0.name) }
        self.changes = changes
    }

    private static func changes(_ old: InstanceConfiguration, _ new: InstanceConfiguration) -> [Change] {
        var changes: [Change] = []
        switch (old.kind, new.kind) {
        case (.zulip(let before), .zulip(let after)):
            var rest = after
            rest.signUp = before.signUp
            if rest != before || old.apps != new.apps { changes.append(.changeInstance(new.name)) }
            if after.signUp != before.signUp { changes.append(.signUp(new.name)) }
        case (.marmot, _), (.zulip, .marmot):
            if old != new { changes.append(.changeInstance(new.name)) }
        }
        return changes
    }

    private static func changes(_ old: ListenerConfiguration, _ new: ListenerConfiguration) -> [Change] {
        var changes: [Change] = []
        if Set(old.serves) != Set(new.serves) { changes.append(.serves(listener: new.name)) }
        if old.trustedProxies != new.trustedProxies { changes.append(.trustedProxies(listener: new.name)) }
        if old.tls != new.tls { changes.append(.tls(listener: new.name)) }
        if old.isAdmin, old.purpose != new.purpose { changes.append(.adminToken(listener: new.name)) }
        return changes
    }

    private static func restarts(_ old: RelayConfiguration, _ new: RelayConfiguration) -> [ConfigurationFault]
    {
        var paths: [(path: [String], sentence: String)] = []
        if old.isSandbox != new.isSandbox {
            paths.append(([], "The sandbox begins and ends with a start; restart the relay."))
        }
        if old.state != new.state {
            paths.append((["state"], "The state directory changes by a restart alone."))
        }
        if old.store != new.store {
            paths.append((["store"], "The store and its keys change by a restart alone."))
        }
        for listener in new.listeners {
            let path = ["listeners", listener.name.text]
            guard let before = old.listener(listener.name) else {
                paths.append((path, "A new listener is opened by a restart alone."))
                continue
            }
            if before.bind != listener.bind {
                paths.append((path + ["bind"], "Where a listener listens changes by a restart alone."))
            }
        }
        for listener in old.listeners where new.listener(listener.name) == nil {
            paths.append((["listeners", listener.name.text], "A listener is closed by a restart alone."))
        }
        return paths.map { path, sentence in
            ConfigurationFault(
                code: .needsRestart, path: ConfigurationPath(path).text, source: .file(line: 0),
                sentence: sentence)
        }
    }
}
