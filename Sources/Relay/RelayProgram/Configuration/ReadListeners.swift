import PushModel

extension ConfigurationReader {
    /// The names that mean a listener of their own.
    static let adminName = "admin"
    static let originName = ListenerConfiguration.originName

    /// Reads `listeners`. Without that key: public on 127.0.0.1:8480 for every instance, admin on
    /// 127.0.0.1:8481. A listener that is the only one for instances need not name them.
    func listeners(_ root: MappingCursor, instances: [ConfiguredName]) -> [ListenerConfiguration] {
        guard let cursor = root.cursor("listeners", keys: nil) else {
            return root.node["listeners"] == nil ? standardListeners(instances) + sectionListeners([]) : []
        }
        let entries = cursor.named()
        let others = entries.filter { $0.name.text != Self.adminName && $0.name.text != Self.originName }
        let all = others.count == 1 ? served(instances) : []
        let found = entries.compactMap { entry -> ListenerConfiguration? in
            if entry.name.text == Self.originName, !sectionNames.contains(entry.name) {
                context.fault(
                    .conflict, entry.path, entry.node.source,
                    "There is no section origin: this name is its listener's.")
                return nil
            }
            guard
                let cursor = MappingCursor(entry.node, entry.path, keys: ConfigurationKeys.listener, context)
            else { return nil }
            return listener(entry.name, cursor, all)
        }
        return found + sectionListeners(entries.map(\.name))
    }

    /// The listener of each section that names none.
    private func sectionListeners(_ named: [ConfiguredName]) -> [ListenerConfiguration] {
        sectionNames.filter { !named.contains($0) }.map { name in
            guard let bind = BindAddress(Self.originBind) else {
                preconditionFailure("The standard listeners are well formed.")
            }
            noteDefault(name, bind: Self.originBind)
            return ListenerConfiguration(
                name: name, bind: bind, purpose: .instances([name]), trustedProxies: [], tls: nil)
        }
    }

    /// Those that a listener can serve.
    private func served(_ instances: [ConfiguredName]) -> [ConfiguredName] {
        instances.filter { name in
            guard case .scalar(let word)? = root["instances"]?[name.text]?["protocol"]?.value,
                let spoken = vocabulary.protocols.first(where: { $0.word == word })
            else { return true }
            return spoken.isServed
        }
    }

    private func standardListeners(_ instances: [ConfiguredName]) -> [ListenerConfiguration] {
        guard let publicName = ConfiguredName("public"), let adminName = ConfiguredName(Self.adminName),
            let publicBind = BindAddress(Self.publicBind), let adminBind = BindAddress(Self.adminBind)
        else { preconditionFailure("The standard listeners are well formed.") }
        noteDefault(adminName, bind: Self.adminBind)
        var listeners = [
            ListenerConfiguration(
                name: adminName, bind: adminBind, purpose: .admin(tokenFile: nil), trustedProxies: [],
                tls: nil)
        ]
        let instances = served(instances)
        if !instances.isEmpty {
            noteDefault(publicName, bind: Self.publicBind, serves: instances)
            listeners.append(
                ListenerConfiguration(
                    name: publicName, bind: publicBind, purpose: .instances(instances), trustedProxies: [],
                    tls: nil))
        }
        return listeners
    }

    private func noteDefault(_ name: ConfiguredName, bind: String, serves: [ConfiguredName] = []) {
        let path = ConfigurationPath(["listeners", name.text])
        context.record?.note(path / "bind", bind, .builtIn)
        guard !serves.isEmpty else { return }
        context.record?.note(
            path / "serves", "[" + serves.map(\.text).joined(separator: ", ") + "]", .builtIn)
    }

    private static let publicBind = "127.0.0.1:8480"
    private static let adminBind = "127.0.0.1:8481"
    private static let originBind = "127.0.0.1:8490"

    /// - Parameter all: what it serves if it names nothing; none: it must name something.
    private func listener(
        _ name: ConfiguredName, _ cursor: MappingCursor, _ all: [ConfiguredName]
    ) -> ListenerConfiguration? {
        let isAdmin = name.text == Self.adminName
        let proxies = (cursor.list("trusted_proxies") ?? []).compactMap { text -> AddressBlock? in
            if let block = AddressBlock(text.text) { return block }
            context.fault(
                .badValue, text.path, text.source, "An IP address, or a network such as 10.0.0.0/8.")
            return nil
        }
        let tls = cursor.cursor("tls", keys: ConfigurationKeys.tls).flatMap(tls)
        let purpose =
            isAdmin
            ? admin(cursor) : sectionNames.contains(name) ? section(name, cursor) : instances(cursor, all)
        guard let bind = bind(name, cursor), let purpose else { return nil }
        if isAdmin, !bind.isLoopback, case .admin(nil) = purpose {
            cursor.missing(
                "token_file",
                "The admin listener needs a token unless it is on loopback: name a file that contains it.")
        }
        if tls == nil { warnOfPlainText(bind, isBehindProxy: !isAdmin && !proxies.isEmpty, cursor) }
        return ListenerConfiguration(
            name: name, bind: bind, purpose: purpose, trustedProxies: proxies, tls: tls)
    }

    private func warnOfPlainText(_ bind: BindAddress, isBehindProxy: Bool, _ cursor: MappingCursor) {
        guard !bind.isLoopback, !isBehindProxy || bind.isWildcard else { return }
        context.warn(
            .plainTextOffLoopback, cursor.path,
            isBehindProxy
                ? "This listener has no TLS and listens on every address of this machine, so that anybody "
                    + "can go past the proxy: bind the address at which the proxy reaches it, or set tls."
                : "This listener is reached off loopback without TLS; set tls, or stand behind a trusted "
                    + "proxy.")
    }

    private func bind(_ name: ConfiguredName, _ cursor: MappingCursor) -> BindAddress? {
        if cursor.node["bind"] != nil {
            return cursor.parsed(
                "bind", BindAddress.init, "An IP address and a port: 127.0.0.1:8480, [::1]:8480.")
        }
        let standard: String
        switch name.text {
        case "public": standard = Self.publicBind
        case Self.adminName: standard = Self.adminBind
        case Self.originName: standard = Self.originBind
        default:
            cursor.missing("bind", "Say where this listener listens: bind: \"127.0.0.1:8480\".")
            return nil
        }
        noteDefault(name, bind: standard)
        return BindAddress(standard)
    }

    private func tls(_ cursor: MappingCursor) -> ListenerConfiguration.TLS? {
        let certificate = cursor.file("cert", .certificate)
        let key = cursor.file("key", .privateKey)
        for name in ConfigurationKeys.tls where cursor.node[name] == nil {
            cursor.missing(
                name, "TLS needs both a certificate chain (cert) and its private key (key), as PEM files.")
        }
        guard let certificate, let key else { return nil }
        return ListenerConfiguration.TLS(certificateFile: certificate, keyFile: key)
    }

    private func admin(_ cursor: MappingCursor) -> ListenerConfiguration.Purpose? {
        if cursor.node["serves"] != nil {
            cursor.fault(
                .conflict, "serves", "The admin listener serves no instances; give them their own listener.")
        }
        return .admin(tokenFile: cursor.file("token_file", .token))
    }

    private func section(
        _ name: ConfiguredName, _ cursor: MappingCursor
    ) -> ListenerConfiguration.Purpose {
        for key in ["serves", "token_file"] where cursor.node[key] != nil {
            cursor.fault(
                .conflict, key,
                "This listener is the \(name)'s alone; instances have listeners of their own.")
        }
        return .instances([name])
    }

    private func instances(
        _ cursor: MappingCursor, _ all: [ConfiguredName]
    ) -> ListenerConfiguration.Purpose? {
        if cursor.node["token_file"] != nil {
            cursor.fault(
                .conflict, "token_file",
                "Only the admin listener has a token; protocols have their own authentication.")
        }
        guard cursor.node["serves"] != nil else {
            guard all.isEmpty else {
                context.record?.note(
                    cursor.path / "serves", "[" + all.map(\.text).joined(separator: ", ") + "]", .builtIn)
                return .instances(all)
            }
            cursor.missing("serves", "Say which instances this listener serves: serves: [NAME].")
            return nil
        }
        guard let texts = cursor.list("serves") else { return nil }
        guard !texts.isEmpty else {
            cursor.fault(.badValue, "serves", "A listener serves at least one instance.")
            return nil
        }
        return .instances(context.references(texts, to: instanceNames, "instance"))
    }
}
