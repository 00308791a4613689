import AdminIngress
import ArgumentParser
import PushModel
import SessionPush
import WireFormats

/// `sealbell device session`: a phone of Session with an account of its own, on the command line,
/// and whoever writes to it in a sandbox.
struct DeviceSessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Plays a phone of Session.",
        subcommands: [
            DeviceSubscribeCommand.self, DeviceUnsubscribeCommand.self, DeviceSendSessionCommand.self,
            DeviceOpenSessionCommand.self
        ])
}

/// `--state`, `--ca`, `--cipher`.
struct PlayedPhoneOptions: ParsableArguments {
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp(
            "The file in which the phone keeps its account, keys and subscription.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp(
            "PEM file of the authority to trust instead of the system's.", valueName: "file"))
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "The cipher of onion requests: \(OnionCipher.allCases.map(\.rawValue).listed("or")).",
            valueName: "cipher"))
    var cipher: String = OnionCipher.xchacha20.rawValue

    func validate() throws {
        guard OnionCipher(rawValue: cipher) != nil else { throw ValidationError("There is no such cipher.") }
    }

    func path(_ shell: Shell) -> String { joinPath(shell.facts.workingDirectory, file) }

    /// The phone's device, and the way to its server.
    ///
    /// - Throws: `CommandFailure` for a URL, a key or a file that is none.
    func device(
        _ phone: PlayedPhone, _ shell: Shell
    ) throws(CommandFailure) -> (device: SessionDevice, wire: KitWire) {
        let way = try SessionWire(phone, ca, shell)
        return (try phone.device(way.server, OnionCipher(rawValue: cipher) ?? .xchacha20), way.wire)
    }

    /// Sends what the phone has to say, and prints what came of it.
    ///
    /// - Parameter keep: writes what the device keeps.
    /// - Returns: whether it had anything to say.
    /// - Throws: `CommandFailure` unless each call has succeeded.
    @discardableResult
    func send(
        _ phone: KitPhone<SessionDevice>, _ wire: KitWire, _ shell: Shell,
        keep: (Secret) throws(CommandFailure) -> Void = { _ in }
    ) async throws(CommandFailure) -> Bool {
        var random = SystemRandomNumberGenerator()
        var hasSaid = false
        try await phone.work(keep: keep) { (call) throws(CommandFailure) in
            hasSaid = true
            return [await wire.answer(call)]
        } take: { (device, answer, call, now) throws(CommandFailure) in
            let taken = device.take(answer, to: call, at: now, using: &random)
            if taken.server == nil, let failure = SessionWire.failure(answer) { throw failure }
            shell.out("relay: \(taken.server?.status.map { "HTTP \($0)" } ?? "no answer")")
            for verdict in taken.verdicts { shell.out(try Self.words(verdict)) }
        }
        return hasSaid
    }

    private static func words(_ verdict: SessionVerdict) throws(CommandFailure) -> String {
        switch verdict {
        case .added: return "subscribed"
        case .updated: return "subscribed again"
        case .removed(let wasThere): return wasThere ? "unsubscribed" : "was not subscribed"
        case .later: throw CommandFailure(.unavailable, "It is to be tried again later.")
        case .refused(let error): throw CommandFailure(.failed, "The relay refuses it: error \(error).")
        case .refusedCall(let status):
            throw CommandFailure(.failed, "The relay refuses it: HTTP \(status).")
        }
    }
}

/// `sealbell device session subscribe`.
struct DeviceSubscribeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe", abstract: "Subscribes a phone at a push server.",
        discussion: """
            The first time it needs --server or --sandbox, and makes an account; later the state file has \
            both. --sandbox takes server and onion key from a running sandbox. With \
            --onion-key the request is sealed as apps seal theirs, and goes to the server without nodes \
            between; without, it goes in the clear. The device token is made up, and fits the simulators \
            of serve --sandbox, unless --token-file names one. Prints the account's id, to which anybody \
            can write, and what the server answered.
            """)

    /// Huawei's service is reserved.
    private static let services = SessionService.allCases.filter { $0 != .huawei }

    @Option(help: ArgumentHelp("The push server, such as https://push.acme.example.", valueName: "url"))
    var server: String?

    @Option(help: ArgumentHelp("The push server's onion key, 64 hexadecimal digits.", valueName: "key"))
    var onionKey: String?

    @Option(
        help: ArgumentHelp(
            "The push service: \(Self.services.map(\.rawValue).listed("or")); \(SessionService.apns.rawValue)"
                + " where nothing is said.",
            valueName: "service"))
    var service: String?

    @Option(help: ArgumentHelp("The file that holds a device token.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("The state directory of a running sandbox.", valueName: "directory"))
    var sandbox: String?

    @OptionGroup var place: PlayedPhoneOptions

    func validate() throws {
        // Before anything is written: a wrong key would be kept, and fail every later call.
        guard onionKey.map(SessionWire.isKey) ?? true else { throw ValidationError(SessionWire.keySentence) }
        guard let service else { return }
        guard Self.services.contains(where: { $0.rawValue == service }) else {
            throw ValidationError("There is no such service.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let played = try played(shell)
        let (device, wire) = try place.device(played, shell)
        let phone = KitPhone(device, shell.world)
        try played.tell(&phone.device)
        phone.device.subscribeAgain()
        // Kept before it is known anywhere: what the server then sends can be opened.
        try played.keep(phone.device.kept)
        let account: AccountID
        do { account = try played.account.account } catch { throw CommandFailure(.failed, error.sentence) }
        shell.out("account \(account.bytes.reveal { Hex.encode(Array($0)) })")
        try await place.send(phone, wire, shell, keep: played.keep)
        return .done
    }

    /// The phone of the state file, changed where options say so; a new one where there is no file.
    private func played(_ shell: Shell) throws(CommandFailure) -> PlayedPhone {
        let path = place.path(shell)
        let token = try shell.content(of: tokenFile)?.trimmed
        let named = service.flatMap(SessionService.init)
        var (server, onionKey) = (server, onionKey)
        if let file = try SandboxFacts.find(option: sandbox, shell) {
            if server == nil { server = try SandboxFacts.url("public", file, option: "--server") }
            if onionKey == nil {
                onionKey = try SandboxFacts.key(of: "session", file, option: "--onion-key")
            }
        }
        guard PlayedPhone.isThere(path) else {
            guard let server else {
                throw CommandFailure(.usage, "\(path) is not there yet: give --server or --sandbox.")
            }
            return PlayedPhone(
                named ?? .apns, server: Self.bare(server), onionKey: onionKey, token: token,
                HeldFile(path), shell.world)
        }
        var phone = try PlayedPhone(file: path)
        if let server { phone.server = Self.bare(server) }
        if let onionKey { phone.onionKey = onionKey }
        if let named { phone.service = named }
        if let token { phone.token = token }
        return phone
    }

    private static func bare(_ url: String) -> String { url.hasSuffix("/") ? String(url.dropLast()) : url }
}

/// `sealbell device session unsubscribe`.
struct DeviceUnsubscribeCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "unsubscribe", abstract: "Takes a phone's subscription back.")

    @OptionGroup var place: PlayedPhoneOptions

    func run(_ shell: Shell) async throws -> Ending {
        let played = try PlayedPhone(file: place.path(shell))
        let (device, wire) = try place.device(played, shell)
        // What fails leaves the file as it was, so that it can be tried again.
        let phone = KitPhone(device, shell.world)
        try played.tell(&phone.device)
        try orFail { () throws(DeviceError) in try phone.device.use(token: nil) }
        guard try await place.send(phone, wire, shell) else {
            throw CommandFailure(.failed, "The phone is not subscribed.")
        }
        try played.keep(phone.device.kept)
        return .done
    }
}

/// `sealbell device session open`.
struct DeviceOpenSessionCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Opens a push that reached the phone.",
        discussion: """
            Reads the push from standard input, or from --file, as a push service delivered it: JSON with \
            enc_payload and spns. With --sandbox it fetches the push from there. Prints what it says, and \
            the message in base64, which its sender has encrypted once more.
            """)

    @OptionGroup var delivery: KitDelivery
    @OptionGroup var place: PlayedPhoneOptions

    func run(_ shell: Shell) async throws -> Ending {
        let phone = try PlayedPhone(file: place.path(shell))
        let body = try await delivery.body(
            PlayedPhone.limitBytes, for: phone.token, isApple: phone.service.isApple, shell)
        let device = try place.device(phone, shell).device
        let opened = try orFail { () throws(DeviceError) in
            try device.open(Delivered(json: body), at: shell.world.now())
        }
        for line in Self.lines(opened) { shell.out(line) }
        return .done
    }

    private static func lines(_ opened: Opened<SessionMessage>) -> [String] {
        switch opened {
        case .show(let message): lines("message", message)
        case .update(let message), .remove(let message): lines("for the account", message)
        case .fetch(let message): lines(message.isTooLong ? "too long, to fetch" : "to fetch", message)
        case .ignore(.repeated): ["ignored: it came before"]
        case .ignore(.expired): ["ignored: expired"]
        case .ignore(.switchedOff): ["ignored: the phone has left its account"]
        case .ignore(.laterVersion): ["ignored: of a later version"]
        }
    }

    private static func lines(_ head: String, _ message: SessionMessage) -> [String] {
        let words = [
            message.namespace.map { "namespace \($0)" }, "hash \(message.hash)",
            message.data.map { counted($0.count, "byte") }
        ].compactMap(\.self).joined(separator: ", ")
        return ["\(head): \(words)"]
            + (message.data.map { [$0.reveal { Base64.text(Array($0)) }] } ?? [])
    }
}
