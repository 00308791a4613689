import ArgumentParser
import AtRest
import PushModel

/// `sealbell config init`: a first configuration, its keys, and what is left to do elsewhere.
struct ConfigInitCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Writes a first configuration with its keys, and says what to do next.",
        discussion: """
            Asks at a terminal for whatever the options do not say. Writes the file, the keys that it names \
            and copies of your credentials, readable by you alone; a file that is there is never \
            overwritten. Then checks it all as config check does, and ends as that does. A password or a \
            key is never asked for: credentials are named by their files.
            """)

    @Option(
        name: .customLong("config"),
        help: ArgumentHelp(
            "The file to write.",
            discussion: "Else /etc/sealbell/sealbell.yaml for root, and ./sealbell.yaml for others.",
            valueName: "file"))
    var file: String?

    @Option(help: ArgumentHelp("The state directory.", valueName: "directory"))
    var state: String?

    @Option(help: ArgumentHelp("The app's name, as logs and metrics have it.", valueName: "name"))
    var app: String?

    @Option(
        name: .customLong("protocol"),
        help: ArgumentHelp("A protocol to serve. May be repeated.", valueName: "word"))
    var protocols: [String] = []

    @Option(
        help: ArgumentHelp(
            "The public host name of the relay, by which servers or apps know it.",
            discussion: "The file does not have it: it stands in what is left to do.", valueName: "host"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            "An answer, by protocol or push service and key. May be repeated.",
            discussion: "Keys are those of the configuration. A push service without an answer is left out.",
            valueName: "part.key=value"))
    var answer: [String] = []

    func run(_ shell: Shell) async throws -> Ending {
        let standard = shell.facts.isRoot ? ConfigurationLoader.standardFiles[1] : "sealbell.yaml"
        let path = joinPath(shell.facts.workingDirectory, file ?? standard)
        guard !Self.isThere(path) else {
            throw CommandFailure(
                .failed,
                "\(path): \(FileFault.exists.sentence) Name another one with --config; nothing was changed.")
        }
        var plan = try SetupPlan(path, answers: answer, shell)
        plan.state = state.map { joinPath(shell.facts.workingDirectory, $0) }
        try plan.know(host)
        try plan.ask(app: app, protocols: protocols)
        // Before anything is written: what is wrong with an answer is told as of any configuration.
        let request = ConfigurationRequest(file: path)
        _ = try ConfigurationLoader.read(
            plan.text, file: path, request, shell.facts, shell.hosting.vocabulary)
        let keys = try plan.write(shell.world)
        shell.out("Wrote \(path).")
        let configuration = try shell.load(request)
        let start = await StartChecks(configuration, shell).all()
        let findings = Findings(
            Finding.warnings(configuration) + start + OwnerChecks(configuration).check())
        findings.findings.filter { $0.severity != .good }.map { $0.line(isStyled: shell.isStyled) }
            .forEach(shell.out)
        (keys + plan.next).forEach(shell.out)
        return findings.status
    }

    static func isThere(_ path: String) -> Bool {
        do throws(FileFault) { _ = try readFile(path, limitBytes: YAMLReader.limitBytes) } catch {
            return error != .missing
        }
        return true
    }
}

/// A configuration in the making.
struct SetupPlan {
    private struct Part {
        let word: String
        let setup: SetupPart
        var lines: [String]
    }

    private let path: String
    private let shell: Shell
    private var answers: [String: String] = [:]
    private var unused: Set<String> = []
    private var app = ""
    private var services: [Part] = []
    private var instances: [Part] = []
    /// Files to copy, and under which names.
    private var copies: [(from: String, to: String)] = []
    var state: String?
    /// `nil`: nobody has said it.
    private var host: String?

    /// - Throws: `CommandFailure(.usage)` for an answer that has no form.
    init(_ path: String, answers: [String], _ shell: Shell) throws(CommandFailure) {
        (self.path, self.shell) = (path, shell)
        for answer in answers {
            guard let equals = answer.firstIndex(of: "="), answer[..<equals].contains(".") else {
                throw CommandFailure(.usage, "An answer is PART.KEY=VALUE.")
            }
            let name = String(answer[..<equals])
            self.answers[name] = String(answer[answer.index(after: equals)...])
            unused.insert(name)
        }
    }

    /// Takes the relay's public host name.
    ///
    /// - Throws: `CommandFailure(.usage)` where it is none.
    mutating func know(_ host: String?) throws(CommandFailure) {
        if let host, !isHostName(host) {
            throw CommandFailure(
                .usage, "--host: a name alone, as push.example.org, without https:// and without a path.")
        }
        self.host = host
    }

    mutating func ask(app given: String?, protocols: [String]) throws(CommandFailure) {
        if let given {
            app = given
        } else {
            app = try say("The app's name, as logs and metrics have it", standard: "app", option: "--app")
        }
        let offered = shell.hosting.protocols.filter { $0.section == nil }
        let words = offered.map { $0.word }
        var chosen = protocols
        if chosen.isEmpty {
            let said = try say(
                "Protocols to serve, of \(words.joined(separator: ", "))", standard: nil,
                option: "--protocol")
            chosen = Self.items(said)
        }
        for word in chosen where !words.contains(word) {
            throw CommandFailure(.usage, "A protocol is one of \(words.joined(separator: ", ")).")
        }
        for hosted in shell.hosting.services where uses(hosted.word, hosted.title) {
            services.append(try part(hosted.word, hosted.setup))
        }
        for spoken in offered where chosen.contains(spoken.word) {
            instances.append(try part(spoken.word, spoken.setup))
        }
        guard !services.isEmpty else {
            let words = shell.hosting.serviceWords.map { "--answer \($0).KEY=VALUE" }
            throw CommandFailure(.usage, "An app needs a push service: \(words.listed("or")).")
        }
        if let wrong = unused.min() {
            throw CommandFailure(.usage, "\(ConfigurationPath([wrong]).text): nobody asks for this answer.")
        }
        // Those that listen for themselves, at relays or a node, need no name.
        guard host == nil, isServed else { return }
        let said = shell.ask?("Public host name of the relay, if it has one already: ") ?? ""
        try know(said.isEmpty ? nil : said)
    }

    /// Whether servers or apps call the relay.
    private var isServed: Bool {
        let kinds = shell.hosting.vocabulary.protocols
        return instances.contains { part in kinds.first { $0.word == part.word }?.isServed == true }
    }

    /// Whether the app is set up for a push service: an answer says so, or the person.
    private func uses(_ word: String, _ title: String) -> Bool {
        if answers.keys.contains(where: { $0.hasPrefix(word + ".") }) { return true }
        let said = shell.ask?("Does the app use \(title)? [y/N] ") ?? ""
        return said.lowercased().hasPrefix("y")
    }

    private mutating func part(_ word: String, _ setup: SetupPart) throws(CommandFailure) -> Part {
        var part = Part(word: word, setup: setup, lines: setup.lines)
        for question in setup.questions {
            let name = "\(word).\(question.key)"
            unused.remove(name)
            let said: String
            if let answer = answers[name] {
                said = answer
            } else {
                said = try say(question.words, standard: question.standard, option: "--answer \(name)")
            }
            part.lines.append("\(question.key): \(value(said, question.form))")
        }
        if let keys = setup.keys { part.lines.append("\(keys.key): \(keys.name)") }
        return part
    }

    private func say(
        _ words: String, standard: String?, option: String
    ) throws(CommandFailure) -> String {
        let hint = standard.map { " [\($0)]" } ?? ""
        let said = shell.ask?("\(words)\(hint): ") ?? ""
        guard let answer = said.isEmpty ? standard : said else {
            throw CommandFailure(.usage, "\(words): say it with \(option).")
        }
        return answer
    }

    private mutating func value(_ said: String, _ form: SetupPart.Question.Form) -> String {
        switch form {
        case .text: return Self.quoted(said)
        case .list: return "[" + Self.items(said).map(Self.quoted).joined(separator: ", ") + "]"
        case .member(let key): return "{ \(key): \(Self.quoted(said)) }"
        case .file(let name):
            let target = joinPath(folder(of: path), name)
            copies.append((joinPath(shell.facts.workingDirectory, said), target))
            return Self.quoted(name)
        }
    }

    private static func items(_ said: String) -> [String] {
        said.split { $0 == "," || $0 == " " }.map(String.init)
    }

    /// A text in YAML's double quotes; what has no form of its own there is left out, and no key wants it.
    private static func quoted(_ text: String) -> String {
        let plain = text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }
        return "\""
            + String(String.UnicodeScalarView(plain)).replacing("\\", with: "\\\\")
            .replacing("\"", with: "\\\"") + "\""
    }

    // MARK: What is written

    /// The configuration's text.
    var text: String {
        let root = shell.facts.isRoot ? "/var/lib/sealbell" : joinPath(folder(of: path), "sealbell-state")
        var lines = [
            "state: \(Self.quoted(state ?? root))", "store:", "  url: \"sqlite:relay.sqlite\"",
            "  keys: storage.keys"
        ]
        if isServed {
            lines += [
                "listeners:",
                "  # A proxy with a certificate stands in front of it (docs/guides/first-hour.md).",
                "  public: { bind: \"127.0.0.1:8480\", trusted_proxies: [127.0.0.1] }",
                "  admin: { bind: \"127.0.0.1:8481\" }"
            ]
        }
        lines += ["apps:", "  \(Self.quoted(app)):"]
        for part in services { lines += ["    \(part.word):"] + part.lines.map { "      \($0)" } }
        lines.append("instances:")
        for part in instances {
            lines += ["  \(part.word)-main:", "    protocol: \(part.word)", "    apps: [\(Self.quoted(app))]"]
            lines += part.lines.map { "    \($0)" }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Writes the credentials and keys that are not there yet, and then the file that names them.
    ///
    /// - Returns: what to tell of new keys.
    func write(_ world: World) throws(CommandFailure) -> [String] {
        let home = folder(of: path)
        // All are read before the first is written.
        let copies = try copies.filter { $0.from != $0.to }.map { (copy) throws(CommandFailure) in
            (bytes: try CredentialCache.read(copy.from), to: copy.to)
        }
        for (bytes, to) in copies where ConfigInitCommand.isThere(to) {
            guard try CredentialCache.read(to) == bytes else {
                throw CommandFailure(
                    .failed,
                    "\(to): \(FileFault.exists.sentence) It holds something else; nothing was changed.")
            }
        }
        do throws(FileFault) { try makeFolder(home) } catch {
            throw CommandFailure(.failed, "\(home): \(error.sentence)")
        }
        for (bytes, to) in copies where !ConfigInitCommand.isThere(to) {
            try writeSecret(to, bytes, replacing: false)
        }
        var told: [String] = []
        for part in instances {
            guard let keys = part.setup.keys else { continue }
            let target = joinPath(home, keys.name)
            guard !ConfigInitCommand.isThere(target) else { continue }
            let publicKey = try keys.make(target, world)
            told.append("Public key of \(part.word)-main, for your build of the app: \(publicKey)")
        }
        let storage = joinPath(home, "storage.keys")
        if !ConfigInitCommand.isThere(storage) {
            do throws(KeyFileError) { _ = try KeyFile.create(storage, world) } catch {
                throw CommandFailure(.failed, "\(storage): \(error.coded)")
            }
        }
        do throws(FileFault) { try writeFile(path, Array(text.utf8), replacing: false) } catch {
            throw CommandFailure(.failed, "\(path): \(error.sentence)")
        }
        return told
    }

    /// What is left to do, a line each.
    var next: [String] {
        let name = host ?? "push.example.org"
        let proxy =
            "Let \(name) lead to this machine (DNS), and a proxy with a certificate for it to "
            + "http://127.0.0.1:8480."
        // Not in the lines below, where a path may hold these words.
        var steps = (services + instances).flatMap(\.setup.next).map {
            $0.replacing("HOST", with: name).replacing("APP", with: app)
        }
        if isServed {
            steps.append(proxy)
            if host == nil {
                steps.append("Above, put this relay's own public host name in the place of \(name).")
            }
        }
        steps.append("Back up storage.keys and the other keys beside it, apart from the state directory.")
        steps.append(
            "sealbell config check \(path); sealbell doctor --config \(path); "
                + "sealbell serve --config \(path)")
        return ["Next:"] + steps.enumerated().map { index, step in "\(index + 1). \(step)" }
    }
}
