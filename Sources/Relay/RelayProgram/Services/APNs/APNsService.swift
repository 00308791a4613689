import APNs
import PushModel

/// APNs as an app of the configuration has it.
enum APNsService: HostedService {
    static let word = "apns"
    static let title = "APNs"
    static let keys = [
        "team", "key_id", "key_file", "bundles", "environment", "voip", "url", "sandbox_url", "ca"
    ]
    static let message: any ServiceMessage.Type = APNsMessage.self
    static let sandboxKeys = [
        "team: SANDBOXTEA", "key_id: SANDBOXKEY", "key_file: apns.p8", "bundles: [org.example.sandbox]",
        "environment: learn", "voip: true"
    ]
    static let simulated = "APNs (both environments)"

    static let setup = SetupPart(
        questions: [
            SetupPart.Question(key: "team", words: "Apple's team id, ten letters and digits"),
            SetupPart.Question(key: "key_id", words: "Id of the APNs key, ten letters and digits"),
            SetupPart.Question(
                key: "key_file", words: "File of that key (AuthKey_….p8)", form: .file("apns.p8"),
                standard: "apns.p8"),
            SetupPart.Question(key: "bundles", words: "Bundle ids, with commas between", form: .list)
        ],
        lines: ["environment: learn"],
        next: [
            "At Apple (developer.apple.com/account): the key under Keys has the service Apple Push "
                + "Notifications, and each bundle id under Identifiers has the capability Push Notifications."
        ])

    static func sandboxPeer(
        for apps: [AppConfiguration], on context: SandboxContext
    ) async throws -> any ServicePeer {
        try await APNsSandboxPeer(for: apps, on: context)
    }

    static func read(_ cursor: MappingCursor) -> APNsSettings? {
        for key in ["team", "key_id", "key_file", "bundles"] where cursor.node[key] == nil {
            cursor.missing(key, "APNs needs team, key_id, key_file and bundles; this one is not there.")
        }
        let rule = "Ten capital letters and digits, as Apple's developer pages show it."
        let team = cursor.parsed("team", appleIdentifier, rule)
        let keyID = cursor.parsed("key_id", appleIdentifier, rule)
        let keyFile = cursor.file("key_file", .apnsKey)
        let bundles = bundles(cursor)
        let base = "The https:// address of a host, with a port if need be and no path."
        let url = cursor.parsed("url", HTTPSBase.init, base)
        let sandboxURL = cursor.parsed("sandbox_url", HTTPSBase.init, base)
        let environment = cursor.choice("environment", default: APNsSettings.Choice.production)
        let voip = cursor.flag("voip", default: false)
        let ca = cursor.file("ca", .authority)
        guard let team, let keyID, let keyFile, !bundles.isEmpty else { return nil }
        return APNsSettings(
            team: team, keyID: keyID, keyFile: keyFile, bundles: bundles, environment: environment,
            voip: voip, url: url, sandboxURL: sandboxURL ?? url, caFile: ca)
    }

    private static func bundles(_ cursor: MappingCursor) -> [String] {
        guard let texts = cursor.list("bundles") else { return [] }
        if texts.isEmpty { cursor.fault(.badValue, "bundles", "At least one bundle id.") }
        var seen: Set<String> = []
        return texts.compactMap { text in
            guard isBundle(text.text) else {
                cursor.context.fault(
                    .badValue, text.path, text.source,
                    "1 to 155 letters, digits, dots and hyphens, without a suffix such as .voip.")
                return nil
            }
            guard seen.insert(text.text).inserted else {
                cursor.context.fault(
                    .conflict, text.path, text.source, "This bundle id stands twice in the list.")
                return nil
            }
            return text.text
        }
    }
}

extension FileContent {
    static let apnsKey = FileContent(words: "an APNs key", inSandbox: .made) { bytes, _ in
        do throws(APNsError) {
            // Identifiers of the right form: the file alone is judged here.
            _ = try APNsCredential(team: "AAAAAAAAAA", keyID: "AAAAAAAAAA", key: bytes, world: .live)
            return nil
        } catch {
            return error.coded
        }
    }
}

extension InstanceReader {
    /// The bundle ids of an app, as the file has them.
    func bundles(of app: ConfiguredName) -> [String] {
        bundleNodes(of: app).compactMap { if case .scalar(let text) = $0.value { text } else { nil } }
    }

    private func bundleNodes(of app: ConfiguredName) -> [ConfigurationNode] {
        guard case .list(let items)? = node(of: app, APNsService.word)?["bundles"]?.value else { return [] }
        return items
    }

    /// Within one instance a bundle id must lead to one app.
    func checkBundles() {
        var owners: [String: ConfiguredName] = [:]
        for name in apps {
            for bundle in bundleNodes(of: name) {
                guard case .scalar(let text) = bundle.value else { continue }
                if let owner = owners[text], owner != name {
                    context.fault(
                        .conflict, cursor.path / "apps", bundle.source,
                        "The apps \(owner) and \(name) of this instance claim the same bundle id."
                    )
                }
                owners[text] = name
            }
        }
    }
}

private func appleIdentifier(_ text: String) -> String? {
    let isForm =
        text.utf8.count == 10
        && text.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
        }
    return isForm ? text : nil
}

/// Whether a text has the form of a bundle id without a push type's suffix.
func isBundle(_ text: String) -> Bool {
    (1...155).contains(text.utf8.count) && !text.hasSuffix(".voip") && !text.hasSuffix(".complication")
        && text.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                || $0 == 0x2D
                || $0 == 0x2E
        }
}
