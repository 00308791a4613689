import PushModel

/// What a reload cannot change. All else of a new configuration comes into force whole: the wiring makes
/// everything from it, and exchanges what stood.
enum ReloadRule {
    /// Compares the configuration in force with a new one.
    ///
    /// - Throws: one fault `.needsRestart` for each thing that only a restart can change: state directory,
    ///   store, the bounds of outbox and connections, and where listeners listen. Then nothing of the new
    ///   file comes into force.
    static func check(_ old: RelayConfiguration, _ new: RelayConfiguration) throws(ConfigurationError) {
        let faults = restarts(old, new)
        guard faults.isEmpty else { throw ConfigurationError(faults) }
    }

    private static func restarts(_ old: RelayConfiguration, _ new: RelayConfiguration) -> [ConfigurationFault]
    {
        var paths: [(path: [String], sentence: String)] = []
        if old.isSandbox != new.isSandbox {
            paths.append(([], "The sandbox begins and ends with a start; restart the relay."))
        }
        if old.state != new.state {
            paths.append((["state"], "The state directory needs a restart to change."))
        }
        if old.store != new.store {
            paths.append((["store"], "The store and its keys need a restart to change."))
        }
        if old.limits.connections != new.limits.connections {
            paths.append(
                (
                    ["limits", "connections"],
                    "How many connections a listener takes needs a restart to change."
                ))
        }
        if old.limits.outboxRows != new.limits.outboxRows || old.limits.outboxBytes != new.limits.outboxBytes
        {
            paths.append((["limits", "outbox"], "The outbox's bound needs a restart to change."))
        }
        for listener in new.listeners {
            let path = ["listeners", listener.name.text]
            guard let before = old.listener(listener.name) else {
                paths.append((path, "A new listener is opened only by a restart."))
                continue
            }
            if before.bind != listener.bind {
                paths.append((path + ["bind"], "Where a listener listens needs a restart to change."))
            }
        }
        for listener in old.listeners where new.listener(listener.name) == nil {
            paths.append((["listeners", listener.name.text], "A listener is closed only by a restart."))
        }
        return paths.map { path, sentence in
            ConfigurationFault(
                code: .needsRestart, path: ConfigurationPath(path).text, source: .file(line: 0),
                sentence: sentence)
        }
    }
}
