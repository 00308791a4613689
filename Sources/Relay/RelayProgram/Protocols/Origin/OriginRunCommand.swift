import ArgumentParser
import OriginServer
import PushModel
import ServiceLifecycle
import WireFormats

/// `sealbell origin`, without a further word.
struct OriginRunCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the origin until it is told to stop.",
        discussion: """
            Its configuration has a section origin, and may have nothing else. With --at it needs none: it \
            stands beside a sandbox (sealbell serve --sandbox) that serves from that directory, signs itself \
            up there, and keeps its own state below it, in origin.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(
        name: .customLong("at"),
        help: ArgumentHelp(
            "The state directory of a running sandbox to stand beside.", valueName: "directory"))
    var sandbox: String?

    @Flag(help: "Drain and end when standard input, a pipe, is closed, so when the parent program ends.")
    var endsWithInput = false

    func validate() throws {
        if sandbox != nil, options.file != nil || options.overrides.state != nil {
            throw ValidationError("--at stands instead of a configuration.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        var start = ServerStart(request: options.request(), endsWithInput: endsWithInput)
        if let sandbox {
            let beside = try OriginBeside(joinPath(shell.facts.workingDirectory, sandbox))
            start.request.text = beside.configuration
            start.request.state = beside.state
            start.welcome = { OriginWelcome($0, beside, shell) }
        }
        return try await start.run(shell)
    }
}

/// An origin beside a sandbox: what it needs to know of it.
struct OriginBeside: Sendable {
    /// Of the origin.
    let state: String
    let sandboxState: String
    private let relay: String

    /// - Throws: `CommandFailure` where no sandbox serves from the directory.
    init(_ directory: String) throws(CommandFailure) {
        let found: RunFile.Found
        do throws(FileFault) { found = try RunFile.find(state: directory) } catch {
            throw CommandFailure(.failed, "\(directory): \(error.sentence)")
        }
        guard case .running(let file) = found, let relay = file.urls["public"] else {
            throw CommandFailure(
                .unavailable,
                "No relay serves from \(directory). Start one there: sealbell serve --sandbox --state "
                    + directory)
        }
        guard file.urls["sandbox-control"] != nil else {
            throw CommandFailure(
                .failed,
                "The relay that serves from \(directory) is no sandbox: write a configuration with a section "
                    + "origin (docs/guides/origin.md).")
        }
        self.relay = relay
        sandboxState = directory
        state = joinPath(directory, "origin")
    }

    /// What to do where the relay refuses the sign-up; most often it admits by invitation.
    ///
    /// - Parameter host: as which the origin signs up.
    func notAdmitted(_ host: String) -> String {
        "The relay does not let this origin sign up. If it admits by invitation: sealbell origins invite "
            + "\(host) --at \(sandboxState), and start the origin again."
    }

    /// The same for every such origin.
    var configuration: String {
        """
        store:
          keys: \(joinPath(sandboxState, "origin.keys"))
        origin:
          url: http://127.0.0.1:8490
          relay:
            url: \(relay)
          contact: admin@origin.test
          credentials: \(joinPath(state, "origin-credentials.json"))
          # The sandbox's own push proxy is on this machine.
          nextcloud:
            allow_local_proxies: true
        listeners:
          origin:
            bind: 127.0.0.1:8490
          admin:
            bind: 127.0.0.1:8491
        """
    }
}

/// Makes an origin beside a sandbox ready: signed up, with a realm and a user, and says what comes next.
final class OriginWelcome: Service {
    private let relay: Relay
    private let beside: OriginBeside
    private let shell: Shell

    private static let user = "ada@example.com"

    init(_ relay: Relay, _ beside: OriginBeside, _ shell: Shell) {
        self.relay = relay
        self.beside = beside
        self.shell = shell
    }

    func run() async throws {
        if let house = relay.hosted.compactMap({ ($0 as? OriginInstance)?.house }).first {
            do {
                try await prepare(house)
            } catch let failure as CommandFailure {
                failure.lines.forEach(shell.err)
            } catch let error as OriginError {
                shell.err(error.sentence)
            }
        }
        // Serving goes on: a service that returned would end the process.
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
    }

    /// - Throws: `CommandFailure` where the relay does not let it sign up, or a file cannot be written;
    ///   `OriginError`.
    func prepare(_ house: OriginHouse) async throws {
        try await house.people.load()
        guard case .told = try await house.signUp(rotates: false) else {
            throw CommandFailure(.unavailable, beside.notAdmitted(house.host))
        }
        if house.people.realms.isEmpty {
            _ = try await house.people.addRealm("example", url: house.settings.url)
        }
        _ = await house.upkeep.tellRealms()
        let file = joinPath(beside.state, "ada.key")
        if try await house.people.user(Self.user) == nil {
            let key = try await house.people.addUser(Self.user, realm: nil).key
            try write(key, to: file)
        } else if !KitFile.isThere(file, limitBytes: 4_096) {
            try write(try await house.people.renewKey(of: Self.user, .apiKey), to: file)
        }
        shell.out("The origin has a user, \(Self.user). A phone of theirs:")
        shell.out(
            "  sealbell device zulip join \(house.settings.url) --user \(Self.user) --key-file \(file) "
                + "--state phone.json --sandbox \(beside.sandboxState) --listen")
    }

    private func write(_ key: String, to file: String) throws(CommandFailure) {
        do throws(FileFault) { try writeFile(file, Array((key + "\n").utf8), replacing: true) } catch {
            throw CommandFailure(.failed, "\(file): \(error.sentence)")
        }
    }
}
