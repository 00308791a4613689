import Testing

/// House rules, read off the source tree.
@Suite("Tidy", .timeLimit(.minutes(30)))
struct TidyTests {
    @Test("Lengths, banned calls, swallowed errors, safety lines and sizes of ports")
    func rulesOfOneFile() throws {
        let files = try Tree.sources()
        #expect(files.count > 20, "the source tree was not found")
        let found = files.flatMap(Rules.all)
        #expect(found.isEmpty, "\(list(found))")
    }

    @Test("Every protocol that may ask for more than others is there")
    func largePorts() throws {
        let names = Set(try Tree.sources().flatMap { Rules.ports($0).map(\.name) })
        #expect(names.count > 40, "the protocols were not found")
        #expect(Rules.largePorts.keys.filter { !names.contains($0) }.isEmpty)
    }

    @Test("Tests neither wait without an end that says why nor lean on being scheduled in time")
    func waits() throws {
        // The rules' own samples stand in this folder.
        let files = try Tree.tests().filter { !$0.path.hasPrefix("Tests/TidyTests/") }
        #expect(files.count > 100, "the tests were not found")
        let found = files.flatMap(WaitRules.all)
        #expect(found.isEmpty, "\(list(found))")
    }

    @Test("No files of the program need each other in a circle")
    func circles() throws {
        let files = try Tree.sources().filter { $0.path.hasPrefix("Sources/Relay/RelayProgram/") }
        #expect(files.count > 100, "the program was not found")
        #expect(Circles.all(files) == [])
    }

    /// Session is an English word too: TLS, HTTP/2 and databases have sessions. The protocol's is the one
    /// that begins a name (`SessionPush`), or stands alone as the word of a configuration or a folder. So
    /// it is with Status, whose word is also that of an answer, and of a relay's report.
    private static var names: Regex<Substring> {
        #/
        (?i:zulip|marmot|nextcloud|waku|gorush|\bswarm)
        |\bSession[A-Z]|["'\/]session["'\/]
        |\bStatus(?!Class|Report)[A-Z]|\/status\/|protocol:\ status
        /#
    }

    @Test("A name of Session or Status is told from the English word")
    func protocolNameOrWord() {
        for name in [
            "import SessionPush", "case \"session\":", "scripts/bench/session/part", "SwarmIngress",
            "import StatusPush", "protocol: status, apps", "scripts/bench/status/part", "WakuIngress",
            "an external gorush"
        ] {
            #expect(name.firstMatch(of: Self.names) != nil, "\(name)")
        }
        let words = [
            "HTTP2ServerSession(x)", "a TLS session", "struct Session {", "session = 3", "URLSession",
            "HTTPStatus(x)", "the status of an answer", "struct Status {", "\"status\": 200", "\"/status\"",
            "StatusReport(x)", "StatusClass.allCases"
        ]
        for word in words { #expect(word.firstMatch(of: Self.names) == nil, "\(word)") }
    }

    @Test("A protocol is named in its own folders and targets alone")
    func protocolNames() throws {
        // Nostr and Waku are one protocol's transport each; an origin is hosted for two protocols; what all
        // apps say alike tells which of them is for whom.
        let homes =
            #/
            (?i)zulip|marmot|nextcloud|session|status|swarm|waku|\/Protocols\/Origin
            |Foundations\/SealbellKit|Nostr(Ingress|\/)|\/Standard(Host|Proto|Comm)
            /#
        try expectUnnamed(Self.names, outside: homes)
    }

    @Test("Fuzzing, foreign peers, canaries and measurements name a protocol in its folder alone")
    func protocolNamesBesides() throws {
        let homes = #/(?i)zulip|marmot|nextcloud|session|status|StandardTargets/#
        let folders = ["interop", "canaries.d", "bench", "chaos", "heap"].map { "scripts/\($0)/" }
        let scripts = try Tree.texts(below: "scripts", endings: ["", "py"]).filter { file in
            file.path == "scripts/canaries" || folders.contains { file.path.hasPrefix($0) }
        }
        let files = try Tree.texts(below: "Fuzz", endings: ["swift"]) + scripts
        #expect(files.count > 20, "the files were not found")
        try expectUnnamed(Self.names, outside: homes, in: files)
    }

    @Test("A push service is named in its own folders and targets, and in protocols, alone")
    func serviceNames() throws {
        // A protocol knows what its devices may name. A simulation has both, as benches do.
        let homes =
            #/
            Sources\/(Proving|Protocols|Services\/(APNs|FCM))|PushModel|Foundations\/SealbellKit
            |Program\/(Serv|Prot|Standard)
            /#
        // The id of a push is that of a header, wherever it goes.
        try expectUnnamed(#/(?i)(apns|fcm)(?!-id)/#, outside: homes)
    }

    private func expectUnnamed<Names: RegexComponent, Homes: RegexComponent>(
        _ names: Names, outside homes: Homes
    ) throws {
        let files = try Tree.sourceTexts(endings: ["swift"])
        #expect(files.count > 200, "the sources were not found")
        try expectUnnamed(names, outside: homes, in: files)
    }

    private func expectUnnamed<Names: RegexComponent, Homes: RegexComponent>(
        _ names: Names, outside homes: Homes, in all: [(path: String, text: String)]
    ) throws {
        let files = all.filter { $0.path.firstMatch(of: homes) == nil }
        let found = files.flatMap { file in
            file.text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap {
                number, line -> String? in
                // A comment may cite the page that a fact comes from.
                let rest = line.replacing(#/docs\/\S+/#, with: "")
                return rest.firstMatch(of: names) == nil ? nil : "\(file.path):\(number + 1): \(line)"
            }
        }
        #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
    }

    @Test("Long files are worth a question")
    func longFiles() throws {
        for file in try Tree.sources() where file.lines.count > Rules.fileQuestionLines {
            Issue.record("\(file.path) has \(file.lines.count) lines", severity: .warning)
        }
    }

    @Test("Every error code has a row in docs/errors.md, and every row has a code")
    func errorCodes() throws {
        let files = try Tree.sources()
        let declared = files.flatMap { file in ErrorCodes.declared(file).map { (file.path, $0.code, $0.line) }
        }
        let documented = ErrorCodes.documented(try Tree.text("docs/errors.md"))
        let missing = declared.filter { !documented.contains($0.1) }.map { "\($0.0):\($0.2): \($0.1)" }
        #expect(missing.isEmpty, "no row in docs/errors.md:\n\(missing.joined(separator: "\n"))")
        let gone = documented.subtracting(declared.map(\.1)).sorted()
        #expect(gone.isEmpty, "rows of docs/errors.md without a code in Sources: \(gone)")
    }

    @Test("Every metric has a row in docs/metrics.md, and every row has a metric")
    func metrics() throws {
        let declared = Set(
            try Tree.sourceTexts(endings: ["swift"]).flatMap { _, text in
                text.matches(of: #/"((?:sealbell|process)_[a-z_]+)"/#).map { String($0.1) }
            })
        let documented = Set(
            try Tree.text("docs/metrics.md").matches(of: #/`((?:sealbell|process)_[a-z_]+)`/#).map {
                String($0.1)
            })
        #expect(declared.count > 20, "the metrics were not found")
        #expect(declared.symmetricDifference(documented).sorted() == [])
    }

    @Test("Every field of the configuration is read where something is done with it")
    func configurationFields() throws {
        let room = "Sources/Relay/RelayProgram/Configuration/"
        let pages = ["Relay", "App", "Instance"].map { room + $0 + "Configuration.swift" }
        let fields = try Tree.sources().filter { (pages + [room + "ConfiguredFile.swift"]).contains($0.path) }
            .flatMap(Fields.stored)
        #expect(fields.count > 50, "the fields were not found")
        let outside = try Tree.texts(below: "Sources/Relay/RelayProgram", endings: ["swift"]).filter {
            !$0.path.hasPrefix(room)
        }.map(\.text).joined(separator: "\n")
        let unread = fields.filter { !Fields.reads(outside, $0.name) }.map { "\($0.type).\($0.name)" }
        #expect(unread.isEmpty, "read, checked, and never used: \(unread)")
    }

    @Test("No unfinished words and no paths of one machine")
    func words() throws {
        let texts =
            try Tree.sourceTexts(endings: ["swift", "h", "modulemap", "md"])
            + Tree.texts(below: "Tests", endings: ["swift"])
            + Tree.texts(below: "docs", endings: ["md"])
            + Tree.texts(below: "scripts", endings: ["", "py", "sh", "c", "conf"])
        let found = texts.flatMap { path, text in
            // The rules' own samples are spelled out in this folder.
            path.hasPrefix("Tests/TidyTests/") || path.hasPrefix("docs/")
                ? WordRules.machinePaths(path, text).filter {
                    !path.hasPrefix("Tests/TidyTests/") && $0.path == path
                }
                : WordRules.unfinished(path, text) + WordRules.machinePaths(path, text)
        }
        #expect(found.isEmpty, "\(list(found))")
    }

    @Test("Files that the documentation names are there")
    func namedPaths() throws {
        let pages =
            try Tree.texts(below: "docs", endings: ["md"])
            + ["README.md", "CONTRIBUTING.md"].map { ($0, try Tree.text($0)) }
        let missing = pages.flatMap { path, text in
            WordRules.namedPaths(text).filter { !Tree.exists($0) }.map { "\(path): \($0)" }
        }
        #expect(missing.isEmpty, "\(missing.joined(separator: "\n"))")
    }

    @Test("Tests that the documentation names are in the files that it names")
    func namedTests() throws {
        let pages = try Tree.texts(below: "docs", endings: ["md"])
        let named = pages.flatMap { path, text in WordRules.namedTests(text).map { (path, $0.file, $0.name) }
        }
        #expect(named.count > 100, "the names were not found")
        let missing = try named.filter { _, file, name in
            try !Tree.exists(file) || !WordRules.holds(Tree.text(file), name)
        }
        #expect(missing.isEmpty, "\(missing.map { "\($0.0): \($0.1): \($0.2)" })")
        let sample = "`Tests/A.swift` (\"b…\", \"…c\": what it does)"
        #expect(WordRules.namedTests(sample).map(\.name) == ["b…", "…c"])
        #expect(WordRules.holds("say b and c", "b…c") && !WordRules.holds("say b and c", "b…x"))
    }

    @Test("The manifest's arrows point down, and nothing of a server stands below a protocol target")
    func manifest() throws {
        let manifest = try Manifest.ours.get()
        #expect(manifest.targets.count > 20)
        #expect(manifest.strangers().isEmpty, "\(manifest.strangers())")
        #expect(manifest.wrongArrows().isEmpty, "\(manifest.wrongArrows())")
        #expect(manifest.targets.contains { $0.folder == Layers.protocols && !$0.isTest })
        #expect(manifest.serverProducts().isEmpty, "\(manifest.serverProducts())")
        let named = Layers.foundation.union(Layers.shared).union(Layers.inProduct).union([Layers.bottom])
        #expect(named.filter { manifest[$0] == nil }.isEmpty, "a rule names a target that is gone")
        #expect(manifest.closure(of: "MarmotPush").contains("libsecp256k1"))
        #expect(!manifest.closure(of: "ZulipPush").contains("libsecp256k1"), "Zulip does without secp256k1")
    }

    @Test("A target imports what it declares, and declares what it imports")
    func imports() throws {
        let manifest = try Manifest.ours.get()
        let files = try Tree.sources() + Tree.tests()
        #expect(files.count > 400, "the tree was not found")
        let found = files.flatMap(manifest.undeclared)
        #expect(found.isEmpty, "\(list(found))")
        let unused = manifest.unused(files, c: try Tree.sourceTexts(endings: ["c"]))
        #expect(unused.isEmpty, "\(unused.joined(separator: "\n"))")
    }

    @Test(
        "What a guide tells an app to write is what the example is built from",
        arguments: [
            ("zulip", "Sources/ZulipApp/AccountNotifications"),
            ("marmot", "Publishing/Sources/MarmotApp/GroupNotifications"),
            ("nextcloud", "Sources/NextcloudApp/AccountPush"), ("session", "Sources/SessionApp/AccountWatch"),
            ("status", "Sources/StatusApp/AccountPush"), ("app", "Sources/AppSupport/Phone")
        ])
    func snippets(_ guide: String, _ example: String) throws {
        let source = try Tree.text("Examples/\(example).swift")
        let marked = try #require(source.firstMatch(of: #/// guide: begin\n((?s:.*))// guide: end\n/#))
        let page = try Tree.text("docs/guides/\(guide).md")
        let fences = page.matches(of: #/```swift\n((?s:.*?))```\n/#).map { String($0.1) }
        #expect(fences == [String(marked.1)])
    }

    private func list(_ found: [Violation]) -> String {
        "\(found.count) places:\n" + found.map(\.description).joined(separator: "\n")
    }
}
