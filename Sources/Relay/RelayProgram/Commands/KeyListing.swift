import AdminIngress
import PushModel

/// Key files, and what may be shown of what they hold.
struct KeyListing {
    struct Key {
        let shown: ShownKey
        /// Whether the running relay has it in force; `nil`: it does not say, or none runs.
        var isInForce: Bool?
        var uses: RunningKeys.Uses?
    }

    struct File {
        /// As the configuration spells it: `instances.NAME.keys`.
        let place: String
        let instance: String?
        /// "bouncer keys".
        let content: String
        /// `nil`: keys that a running relay has in force and that stand in no file any more.
        let file: String?
        /// Which line, or what else, names the file.
        let from: String
        var keys: [Key] = []
        /// Why it cannot be read, as a sentence.
        var fault: String?
        /// Whether a running relay tells which of its keys are in force.
        var isCompared = true
    }

    private(set) var files: [File] = []

    /// Reads the files that a configuration names, and those that its relay makes.
    ///
    /// - Parameter instance: whose keys alone; `nil`: everybody's, and those of the store.
    mutating func read(_ configuration: RelayConfiguration, only instance: String?) {
        for named in configuration.files where named.content.keys != nil {
            let owner = configuration.instances.first { named.path.hasPrefix("instances.\($0.name.text).") }
            guard instance == nil || owner?.name.text == instance else { continue }
            var file = File(
                place: named.path, instance: owner?.name.text, content: "\(named.content.words)",
                file: named.file, from: named.source.place(configuration.file))
            file.isCompared = owner != nil
            // Before the first start there is neither a store nor its keys.
            let isToCome = named.path == "store.keys" && configuration.store.engine.isToCome
            Self.read(named.content, mayBeMissing: isToCome, into: &file)
            files.append(file)
        }
        for owner in configuration.instances where instance == nil || owner.name.text == instance {
            guard
                let made = (owner.settings as? any KeyMaking)?.madeKey(
                    of: owner.name, state: configuration.state)
            else { continue }
            var file = File(
                place: "instances.\(owner.name)", instance: owner.name.text,
                content: "\(made.content.words)", file: made.file, from: "made by the relay")
            file.isCompared = false
            Self.read(made.content, mayBeMissing: true, into: &file)
            files.append(file)
        }
    }

    private static func read(_ content: FileContent, mayBeMissing: Bool = false, into file: inout File) {
        guard let path = file.file, let keys = content.keys else { return }
        let bytes: Secret
        do throws(FileFault) {
            bytes = try readSecret(path, limitBytes: credentialLimitBytes)
        } catch {
            if !mayBeMissing || error != .missing { file.fault = error.sentence }
            return
        }
        file.fault = content.fault(bytes, path)
        guard file.fault == nil else { return }
        guard let found = keys(bytes, path) else {
            file.fault = "It holds no \(content.words)."
            return
        }
        file.keys = found.map { Key(shown: $0) }
    }

    /// Notes which keys are in force, and adds those that are and stand in no file.
    mutating func compare(with running: RunningKeys) {
        var rest = running.keys
        for index in files.indices where files[index].isCompared {
            for place in files[index].keys.indices {
                guard case .publicKey(let text) = files[index].keys[place].shown else { continue }
                let at = rest.firstIndex { $0.instance == files[index].instance && $0.publicKey == text }
                files[index].keys[place].isInForce = at != nil
                if let at { files[index].keys[place].uses = rest.remove(at: at).uses }
            }
        }
        for key in rest {
            let shown = Key(shown: .publicKey(key.publicKey), isInForce: true, uses: key.uses)
            if let known = files.firstIndex(where: { $0.file == nil && $0.instance == key.instance }) {
                files[known].keys.append(shown)
            } else {
                files.append(
                    File(
                        place: "instances.\(key.instance)", instance: key.instance, content: "keys in force",
                        file: nil, from: "the running relay", keys: [shown]))
            }
        }
    }
}

extension StoreConfiguration.Engine {
    /// Whether the relay makes it, and its keys, at its first start.
    fileprivate var isToCome: Bool {
        guard case .sqlite(let path) = self else { return false }
        return FileFacts.of(path) == nil
    }
}

// MARK: As text

extension KeyListing {
    /// A line for each file, and one or two below it for each key.
    var lines: [String] {
        files.flatMap { file in
            let place = file.file.map { " in \($0)" } ?? ""
            return ["\(file.place): \(file.content)\(place) (\(file.from))"]
                + file.notes.map { "  " + $0 } + file.keys.flatMap { $0.lines.map { "  " + $0 } }
        }
    }
}

extension KeyListing.File {
    fileprivate var notes: [String] {
        if let fault { return [fault] }
        return keys.isEmpty ? ["not made yet: the relay makes it at its first start"] : []
    }
}

extension KeyListing.Key {
    fileprivate var lines: [String] {
        let name =
            switch shown {
            case .publicKey(let text): text
            case .number(let number): "key \(number)"
            case .secrets(let count): counted(count, "key") + ", not shown: each is a secret"
            }
        return [name] + (uses.map { ["  " + $0.words] } ?? [])
            + (isInForce == false ? ["  not in force: sealbell reload takes it up"] : [])
    }
}

// MARK: As JSON

extension KeyListing {
    struct Row: Encodable {
        var place: String
        var instance: String?
        var content: String
        var file: String?
        var from: String
        var fault: String?
        var publicKey: String?
        var number: UInt32?
        var count: Int?
        var inForce: Bool?
        var uses: RunningKeys.Uses?

        enum CodingKeys: String, CodingKey {
            case place, instance, content, file, from, fault, number, count, uses
            case publicKey = "public_key"
            case inForce = "in_force"
        }
    }

    /// One for each key, and one for each file without any.
    var rows: [Row] {
        files.flatMap { file in
            let head = Row(
                place: file.place, instance: file.instance, content: file.content, file: file.file,
                from: file.from, fault: file.fault)
            guard !file.keys.isEmpty else { return [head] }
            return file.keys.map { key in
                var row = head
                switch key.shown {
                case .publicKey(let text): row.publicKey = text
                case .number(let number): row.number = number
                case .secrets(let count): row.count = count
                }
                (row.inForce, row.uses) = (key.isInForce, key.uses)
                return row
            }
        }
    }
}
