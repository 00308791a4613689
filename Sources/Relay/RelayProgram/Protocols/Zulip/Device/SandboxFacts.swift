import ZulipPush

extension SandboxFacts {
    /// The key that apps of its Zulip instance are built with: the only one of that form.
    static func bouncerKey(_ file: RunFile) throws(CommandFailure) -> String {
        // Other protocols have keys of other forms, in which no registration can be sealed.
        let keys = file.publicKeys.values.compactMap { keys in
            keys.first { (try? ZulipAppBuild(bouncerKey: $0)) != nil }
        }
        guard keys.count == 1, let key = keys.first else {
            throw CommandFailure(
                .usage, "The sandbox has \(keys.count) Zulip instances: give --bouncer-key.")
        }
        return key
    }

    /// The bundle id of its only app that has one.
    static func bundle(_ file: RunFile) throws(CommandFailure) -> String {
        let bundles = Set(file.apps.values.flatMap(\.self))
        guard bundles.count == 1, let bundle = bundles.first else {
            throw CommandFailure(
                .usage,
                "The sandbox has \(bundles.count) app ids: give --app-id with one of "
                    + bundles.sorted().listed("or") + ".")
        }
        return bundle
    }
}
