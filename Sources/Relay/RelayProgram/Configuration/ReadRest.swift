import PostgresStore
import PushModel

extension ConfigurationReader {
    func log(_ root: MappingCursor) -> LogConfiguration {
        guard let cursor = root.part("log", keys: ConfigurationKeys.log) else {
            return LogConfiguration(level: .info, format: .auto)
        }
        return LogConfiguration(
            level: cursor.choice("level", default: LogLevel.info),
            format: cursor.choice("format", default: LogConfiguration.Format.auto))
    }

    func limits(_ root: MappingCursor) -> LimitsConfiguration {
        var limits = LimitsConfiguration()
        guard let cursor = root.part("limits", keys: ConfigurationKeys.limits) else { return limits }
        if let outbox = cursor.part("outbox", keys: ConfigurationKeys.outbox) {
            limits.outboxRows = outbox.number("rows", in: 1_000...100_000_000, default: limits.outboxRows)
            limits.outboxBytes = Int64(
                outbox.number("bytes", in: 1 << 20...1 << 40, default: Int(limits.outboxBytes), bytes: true))
        }
        let perMinute = cursor.number(
            "pushes_per_minute", in: 0...100_000_000, default: limits.pushesPerMinute ?? 0)
        limits.pushesPerMinute = perMinute == 0 ? nil : perMinute
        limits.connections = cursor.number("connections", in: 16...1_000_000, default: limits.connections)
        return limits
    }

    func alerts(_ root: MappingCursor) -> AlertsConfiguration {
        var alerts = AlertsConfiguration()
        guard let cursor = root.part("alerts", keys: ConfigurationKeys.alerts) else { return alerts }
        alerts.log = cursor.flag("log", default: true)
        alerts.gauge = cursor.flag("gauge", default: true)
        let overdue = cursor.number(
            "overdue_minutes", in: 0...20_160, default: AlertsConfiguration.overdueMinutes)
        alerts.overdueAfter = overdue == 0 ? nil : .seconds(60 * overdue)
        alerts.webhook = cursor.cursor("webhook", keys: ConfigurationKeys.webhook).flatMap { webhook in
            for key in ["url", "secret_file"] where webhook.node[key] == nil {
                webhook.missing(
                    key, "A webhook needs url and secret_file; its calls are signed with the secret.")
            }
            let url = webhook.parsed("url", HTTPSURL.init, "An https:// address.")
            let secret = webhook.file("secret_file", .webhookSecret)
            let authority = webhook.file("ca", .webhookAuthority)
            guard let url, let secret else { return nil }
            return AlertsConfiguration.Webhook(url: url, secretFile: secret, authorityFile: authority)
        }
        alerts.mail = cursor.cursor("mail", keys: ConfigurationKeys.mail).flatMap { mail in
            guard mail.node["command"] != nil else {
                mail.missing(
                    "command", "Name a program and its arguments: command: [/usr/sbin/sendmail, -t].")
                return nil
            }
            guard let words = mail.list("command")?.map(\.text) else { return nil }
            guard let program = words.first, program.hasPrefix("/"), words.count <= 32 else {
                mail.fault(.badValue, "command", "The absolute path of a program, and at most 31 arguments.")
                return nil
            }
            // The operator's mailbox on this machine; an alias sends it on.
            var to = "root"
            if mail.node["to"] != nil {
                let told = mail.parsed(
                    "to", Self.recipient, "One mail address, such as ops@example.org, without a name.")
                guard let told else { return nil }
                to = told
            }
            return AlertsConfiguration.Mail(command: words, to: to)
        }
        return alerts
    }

    /// A mailbox, with or without a domain. What stands in the head of a message must not end its line, nor
    /// name more than one.
    private static func recipient(_ text: String) -> String? {
        let isPlain = text.utf8.allSatisfy {
            (0x21...0x7E).contains($0) && !",;:<>()[]\"\\".utf8.contains($0)
        }
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard isPlain, text.utf8.count <= 254, (1...2).contains(parts.count),
            parts.allSatisfy({ !$0.isEmpty })
        else { return nil }
        return text
    }

    func proxy(_ root: MappingCursor) -> OutgoingProxy? {
        root.parsed(
            "proxy", OutgoingProxy.init,
            "An address such as http://proxy.example.org:3128, without a password.")
    }

    /// The store's place. A relative database lies in the state directory.
    func store(_ root: MappingCursor, state: String) -> StoreConfiguration? {
        let cursor = root.cursor("store", keys: ConfigurationKeys.store)
        let engine = engine(cursor, state: state)
        if cursor?.node["url"] == nil {
            let standard = "sqlite:" + joinPath(state, "relay.sqlite")
            context.record?.note(ConfigurationPath(["store", "url"]), standard, .builtIn)
        }
        guard let keys = storageKeys(cursor, state: state) else { return nil }
        return engine.map { StoreConfiguration(engine: $0, keysFile: keys) }
    }

    private func engine(_ cursor: MappingCursor?, state: String) -> StoreConfiguration.Engine? {
        guard let cursor, cursor.node["url"] != nil else {
            return .sqlite(path: joinPath(state, "relay.sqlite"))
        }
        guard let url = cursor.text("url")?.text else { return nil }
        if url.hasPrefix("postgres:") || url.hasPrefix("postgresql:") { return postgres(cursor, url) }
        if cursor.node["password_file"] != nil {
            cursor.fault(.conflict, "password_file", "Only a PostgreSQL database has a password.")
        }
        if url.hasPrefix("sqlite:"), url != "sqlite:", !url.hasPrefix("sqlite://") {
            return .sqlite(path: joinPath(state, String(url.dropFirst("sqlite:".count))))
        }
        if url == "memory:" {
            if context.isSandbox { return .memory }
            cursor.fault(
                .conflict, "url", "Memory keeps nothing across a restart; it is for --sandbox alone.")
        } else {
            cursor.fault(
                .badValue, "url",
                "Write sqlite: and a path, as in sqlite:relay.sqlite, or postgresql:// and a database.")
        }
        return nil
    }

    private func postgres(_ cursor: MappingCursor, _ url: String) -> StoreConfiguration.Engine? {
        let file = cursor.node["password_file"] == nil ? nil : cursor.file("password_file", .databasePassword)
        // What is wrong with it is not repeated: it may hold a password.
        let address: PostgresAddress
        do throws(StoreError) { address = try PostgresAddress(url) } catch {
            cursor.fault(
                .badValue, "url",
                error.code == .unavailable
                    ? PostgresAddress.missingLibrary
                    : "Write postgresql://USER@HOST/DATABASE, with further hosts behind commas and libpq's "
                        + "options behind a question mark.")
            return nil
        }
        guard !address.holdsSecret else {
            cursor.fault(
                .badValue, "url",
                "No password here, where logs and process lists may show it: put it into a file of its own "
                    + "and set store.password_file.")
            return nil
        }
        if cursor.node["password_file"] != nil, file == nil { return nil }
        return .postgres(url: url, passwordFile: file)
    }

    /// Outside the state directory by default, so that one backup does not take both (SECURITY.md).
    ///
    /// A rehearsal has keys of its own, whatever the file of the relay that serves says: those keys could
    /// else be rotated and dropped with a store that is not theirs.
    private func storageKeys(_ cursor: MappingCursor?, state: String) -> String? {
        let file: String
        if let cursor, let node = cursor.node["keys"], !(context.isSandbox && node.source.isFile) {
            guard let named = cursor.file("keys", .storageKeys) else { return nil }
            file = named
        } else {
            guard let standard = standardKeys(state: state) else {
                context.fault(
                    .missingKey, ConfigurationPath(["store", "keys"]), .builtIn,
                    "There is no home directory to keep storage keys in: set store.keys.")
                return nil
            }
            file = standard
            context.record?.note(ConfigurationPath(["store", "keys"]), file, .builtIn)
            context.files.append(
                ConfiguredFile(content: .storageKeys, file: file, path: "store.keys", source: .builtIn))
        }
        if !context.isSandbox, file.hasPrefix(state + "/") {
            context.warn(
                .storageKeysInsideState, ConfigurationPath(["store", "keys"]),
                "The storage keys lie inside the state directory: one backup would contain both. "
                    + "Move them out and set store.keys.")
        }
        return file
    }

    private func standardKeys(state: String) -> String? {
        if context.isSandbox { return joinPath(state, "storage.keys") }
        if let directory = facts.environment["CREDENTIALS_DIRECTORY"], directory.hasPrefix("/") {
            return joinPath(directory, "storage.keys")
        }
        if facts.isRoot { return "/etc/sealbell/storage.keys" }
        return facts.home.map { joinPath($0, ".config/sealbell/storage.keys") }
    }
}
