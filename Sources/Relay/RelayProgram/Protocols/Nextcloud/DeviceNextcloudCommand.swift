import ArgumentParser
import NextcloudPush
import PushModel

/// `sealbell device nextcloud`: a device of a real Nextcloud server, on the command line.
struct DeviceNextcloudCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nextcloud", abstract: "Plays an app of a Nextcloud server.",
        subcommands: [
            DeviceRegisterCommand.self, DeviceOpenCommand.self, DeviceUnregisterCommand.self
        ])
}

/// `--state`, `--ca`.
struct PlayedDeviceOptions: ParsableArguments {
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp(
            "The file in which the device keeps its key, password and registration.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp(
            "PEM file of the authority to trust instead of the system's.", valueName: "file"))
    var ca: String?

    func path(_ shell: Shell) -> String { joinPath(shell.facts.workingDirectory, file) }

    func wire(_ shell: Shell) throws(CommandFailure) -> KitWire { try KitWire(direct: ca, shell) }
}

/// `sealbell device nextcloud register`.
struct DeviceRegisterCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "register", abstract: "Registers a device at a Nextcloud server and at a relay.",
        discussion: """
            The first time it needs --server, --user, --password-file and --relay; later the state file \
            has them. The password is an app password (Settings, Security, at the server): with a login's \
            own the server refuses push. The device token is made up, and fits the simulators of serve \
            --sandbox, unless --token-file names one. Prints what server and relay answered.
            """)

    @Option(help: ArgumentHelp("The Nextcloud server, such as https://cloud.example.org.", valueName: "url"))
    var server: String?

    @Option(help: ArgumentHelp("The user's id.", valueName: "id"))
    var user: String?

    @Option(help: ArgumentHelp("The login name, where it is not the user's id.", valueName: "name"))
    var login: String?

    @Option(help: ArgumentHelp("The file that holds the app password.", valueName: "file"))
    var passwordFile: String?

    @Option(help: ArgumentHelp("The relay, with instance and app.", valueName: "url"))
    var relay: String?

    @Option(
        help: ArgumentHelp(
            "The app that it stands for: \(PlayedDevice.Kind.words).",
            valueName: "app"))
    var app: String = PlayedDevice.Kind.talkAndroid.rawValue

    @Option(
        help: ArgumentHelp(
            "The file that holds a device token; of an iOS app with calls two, with a blank between them.",
            valueName: "file"))
    var tokenFile: String?

    @OptionGroup var place: PlayedDeviceOptions

    func validate() throws {
        guard PlayedDevice.Kind(rawValue: app) != nil else { throw ValidationError("There is no such app.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let wire = try place.wire(shell)
        let played = try playedDevice(shell)
        let phone = KitPhone(try played.device(), shell.world)
        try played.tell(&phone.device)
        phone.device.registerAgain()
        var isAsked = false
        // Bound: what the server can do, its registration, the relay, and the relay once more with the
        // account's name.
        try await phone.work(atMost: 4, keep: played.keep) { (call) throws(CommandFailure) in
            [await wire.answer(call)]
        } then: { (call, answers) throws(CommandFailure) in
            guard let answer = answers.first else { return }
            guard isAsked else {
                isAsked = true
                if case .http(200, _, _) = answer { return }
                throw CommandFailure(.unavailable, "server: \(answer.words) when asked what it can do.")
            }
            shell.out("\(played.peer(of: call)): \(answer.words)")
        }
        let status = phone.device.status(at: shell.world.now())
        let cause = status.detail.flatMap { NextcloudError.Code(rawValue: $0) }
            .map { NextcloudError($0).sentence }
        switch status.state {
        case .active:
            shell.out("registered")
            return .done
        case .failed: throw CommandFailure(.failed, cause ?? status.advice.sentence)
        case .none, .pending:
            throw CommandFailure(
                .unavailable, (cause.map { "\($0) " } ?? "") + "Not registered; try again later.")
        }
    }

    /// The device of the state file, changed where options say so; a new one where there is no file.
    private func playedDevice(_ shell: Shell) throws -> PlayedDevice {
        let path = place.path(shell)
        let password = try shell.content(of: passwordFile)?.trimmed
        let token = try shell.content(of: tokenFile)?.trimmed
        guard PlayedDevice.isThere(path) else {
            guard let server, let user, let password, let relay else {
                throw CommandFailure(
                    .usage, "\(path) is not there yet: give --server, --user, --password-file and --relay.")
            }
            let kind = PlayedDevice.Kind(rawValue: app) ?? .talkAndroid
            return PlayedDevice(
                kind, server: server, user: user, login: login ?? user, appPassword: password, relay: relay,
                token: token ?? kind.inventToken(shell.world), HeldFile(path))
        }
        var played = try PlayedDevice(file: path)
        if let server { played.server = server }
        if let user { played.user = user }
        if let login { played.login = login }
        if let password { played.appPassword = password }
        if let relay { played.relay = relay }
        if let token { played.token = token }
        return played
    }
}

extension PlayedDevice {
    /// Which of the two a call asks, as a line names it.
    fileprivate func peer(of call: Call) -> String {
        call.http?.url.hasPrefix(server) ?? false ? "server" : "relay"
    }
}

/// `sealbell device nextcloud unregister`.
struct DeviceUnregisterCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "unregister", abstract: "Takes a device back at its server and at its relay.")

    @OptionGroup var place: PlayedDeviceOptions

    func run(_ shell: Shell) async throws -> Ending {
        let wire = try place.wire(shell)
        let played = try PlayedDevice(file: place.path(shell))
        let phone = KitPhone(try played.device(), shell.world)
        try orFail { () throws(DeviceError) in try phone.device.use(token: nil) }
        guard !phone.device.isGone else { throw CommandFailure(.failed, "The device is not registered.") }
        var told = 0
        // Bound: one call to each of the two; what found no network stays in the state file.
        try await phone.work(atMost: 2, keep: played.keep) { (call) throws(CommandFailure) in
            let answer = await wire.answer(call)
            shell.out("\(played.peer(of: call)): \(answer.words)")
            told += 1
            return [answer]
        }
        guard phone.device.isGone else {
            let wait = phone.device.nextDue?.since(shell.world.now()).wholeMilliseconds ?? 0
            let time = wait > 0 ? "in \(wait / 1_000 + 1) s" : "later"
            throw CommandFailure(.unavailable, "Not everything was taken back; run it again \(time).")
        }
        // What could not be told for too long is given up without a call.
        guard told > 0 else {
            throw CommandFailure(
                .failed, "It was not taken back within 30 days: server or relay may still know the phone.")
        }
        shell.out("unregistered")
        return .done
    }
}

/// `sealbell device nextcloud open`.
struct DeviceOpenCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Verifies and opens a push that reached the device.",
        discussion: """
            Reads the push from standard input, or from --file, as a push service delivered it: JSON with \
            subject and signature, beside aps or in data. With --sandbox it fetches the push from there. \
            Prints what it says.
            """)

    @OptionGroup var delivery: KitDelivery
    @OptionGroup var place: PlayedDeviceOptions

    func run(_ shell: Shell) async throws -> Ending {
        let played = try PlayedDevice(file: place.path(shell))
        let device = try played.device()
        let body = try await delivery.body(
            PlayedDevice.limitBytes, for: played.token, isApple: played.kind.isApple, shell)
        let opened = try orFail { () throws(DeviceError) in
            try device.open(Delivered(json: body), at: shell.world.now())
        }
        shell.out(Self.text(opened))
        return .done
    }

    private static func text(_ opened: Opened<NextcloudContent>) -> String {
        switch opened {
        case .show(let content): text(content)
        case .fetch(let content): "\(text(content)); the app fetches the rest"
        case .remove(let content), .update(let content): text(content)
        case .ignore(.switchedOff): "the device has left its account"
        case .ignore: "of a form that this version does not know"
        }
    }

    private static func text(_ content: NextcloudContent) -> String {
        switch content {
        case .alert(let alert):
            let words = [
                alert.id.map { "nid \($0)" }, "app \(alert.app)", alert.objectType.map { "type \($0)" },
                alert.objectID.map { "id \($0)" }, alert.subject.map { "“\($0)”" }
            ].compactMap(\.self).joined(separator: ", ")
            return "alert: \(words)"
        case .withdrawal(let ids): return "withdrawal: nid \(ids.map(String.init).joined(separator: ", "))"
        case .withdrawalOfAll: return "withdrawal of everything"
        }
    }
}
