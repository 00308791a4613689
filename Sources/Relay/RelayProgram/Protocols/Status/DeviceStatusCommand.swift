import ArgumentParser
import PushModel
import Secp256k1Keys
import StatusPush
import WakuIngress
import WebClient
import WireFormats

/// `sealbell device status`: a member of Status's network, phone and sender, on the command line.
struct DeviceStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Plays a member of Status, phone and sender.",
        subcommands: [
            DeviceRegisterStatusCommand.self, DeviceUnregisterStatusCommand.self,
            DeviceSendStatusCommand.self, DeviceOpenStatusCommand.self
        ])
}

/// `--state`, `--ca`.
struct PlayedMemberOptions: ParsableArguments {
    @Option(
        name: .customLong("state"),
        help: ArgumentHelp(
            "The file in which the member keeps its keys and registration.", valueName: "file"))
    var file: String

    @Option(
        help: ArgumentHelp("PEM file of an authority to trust beside the system's.", valueName: "file"))
    var ca: String?

    func path(_ shell: Shell) -> String { joinPath(shell.facts.workingDirectory, file) }

    static let nodeSentence =
        "--node: An address such as http://127.0.0.1:8645; http:// only on this machine."

    /// The way to the member's node.
    func line(_ member: PlayedMember, _ shell: Shell) async throws(CommandFailure) -> NodeLine {
        guard let node = WakuNode(member.node) else { throw CommandFailure(.usage, Self.nodeSentence) }
        let line = NodeLine(
            node: node, web: HTTPSFetch(beside: ca, shell), world: shell.world, patience: shell.wait)
        try await line.open()
        return line
    }

    /// Tells servers what is new, and prints what each has answered.
    ///
    /// - Throws: `CommandFailure` unless each has done it.
    func settle(
        _ member: PlayedMember, _ device: StatusDevice, _ shell: Shell
    ) async throws(CommandFailure) {
        var device = device
        // Kept before it is known anywhere: a version that a server has heard is not used again.
        try member.keep(device.kept)
        let events = try await line(member, shell).settle(&device, keep: member.keep)
        try member.keep(device.kept)
        for event in events { if let words = Self.words(event) { shell.out(words) } }
        for server in device.servers {
            switch server.condition {
            case .registered, .unregistered: break
            case .waiting, .givenUp: throw CommandFailure(.unavailable, "A server has not answered.")
            case .refused: throw CommandFailure(.failed, "A server refuses it.")
            }
        }
    }

    private static func words(_ event: StatusInstallation.Event) -> String? {
        func server(_ point: PublicPoint) -> String { String(StatusKeyFile.publicText(point).prefix(12)) }
        switch event {
        case .registered(let point): return "server \(server(point)): registered"
        case .unregistered(let point): return "server \(server(point)): unregistered"
        case .versionRaised(let point): return "server \(server(point)): holds a higher version, told again"
        case .refused(let point, .malformed): return "server \(server(point)): malformed"
        case .refused(let point, .unsupportedToken): return "server \(server(point)): unsupported token"
        case .refused(let point, .versionMismatch): return "server \(server(point)): version mismatch"
        case .later(let point): return "server \(server(point)): could not, told again later"
        case .otherInstallation: return nil
        }
    }
}

/// `sealbell device status register`.
struct DeviceRegisterStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "register", abstract: "Registers a phone at push notification servers.",
        discussion: """
            The first time it needs --node and --server, or --sandbox, and makes an account; later the \
            state file has them. --sandbox takes node, key and bundle id from a running sandbox. The node \
            is one of its own: one that the relay reads from has nothing left for others. The device token \
            is made up, and fits the simulators of serve --sandbox, unless --token-file names one. Prints \
            the account's public key, which senders need, and what each server answered.
            """)

    @Option(help: ArgumentHelp("The Waku node, such as http://127.0.0.1:8646.", valueName: "url"))
    var node: String?

    @Option(
        help: ArgumentHelp("A server's public key; once for each server.", valueName: "key"))
    var server: [String] = []

    @Option(
        help: ArgumentHelp(
            "The push service: \(DeviceToken.Service.allCases.map(\.rawValue).listed("or")); apns "
                + "where nothing is said.",
            valueName: "service"))
    var service: String?

    @Option(help: ArgumentHelp("The app's bundle id, for apns.", valueName: "bundle"))
    var topic: String?

    @Option(help: ArgumentHelp("The file that holds a device token.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("The state directory of a running sandbox.", valueName: "directory"))
    var sandbox: String?

    @OptionGroup var place: PlayedMemberOptions

    func validate() throws {
        // Before anything is written: what is wrong would be kept, and fail every later call.
        guard server.allSatisfy({ StatusKeyFile.point($0) != nil }) else {
            throw ValidationError("--server: A public key, as sealbell keys new status prints it.")
        }
        guard server.count <= StatusLimits.deviceServers else {
            throw ValidationError("--server: At most \(StatusLimits.deviceServers).")
        }
        guard node.map({ WakuNode($0) != nil }) ?? true else {
            throw ValidationError(PlayedMemberOptions.nodeSentence)
        }
        guard service.map({ DeviceToken.Service(rawValue: $0) != nil }) ?? true else {
            throw ValidationError("There is no such service.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let member = try member(shell)
        var device = try orFail { () throws(DeviceError) in try member.phone() }
        device.retry()
        shell.out("account \(StatusKeyFile.publicText(try member.key.point))")
        try await place.settle(member, device, shell)
        return .done
    }

    /// The member of the state file, changed where options say so; a new one where there is no file.
    private func member(_ shell: Shell) throws(CommandFailure) -> PlayedMember {
        let path = place.path(shell)
        let token = try shell.content(of: tokenFile)?.trimmed
        let named = service.flatMap(DeviceToken.Service.init)
        var (node, topic, points) = (node, topic, server.compactMap { StatusKeyFile.point($0) })
        if let file = try SandboxFacts.find(option: sandbox, shell) {
            if node == nil { node = try SandboxFacts.url("sandbox-waku-client", file, option: "--node") }
            if points.isEmpty {
                let key = try SandboxFacts.key(of: "status", file, option: "--server")
                points = StatusKeyFile.point(key).map { [$0] } ?? []
            }
            if named != .fcm, topic == nil { topic = try SandboxFacts.bundle(file, option: "--topic") }
        }
        guard PlayedMember.isThere(path) else {
            guard let node, !points.isEmpty else {
                throw CommandFailure(
                    .usage, "\(path) is not there yet: give --node and --server, or --sandbox.")
            }
            let made = try PlayedMember(
                named ?? .apns, node: node, servers: points, topic: topic ?? "", token: token,
                HeldFile(path), shell.world)
            try Self.check(made)
            return made
        }
        var member = try PlayedMember(file: path)
        if let node { member.node = node }
        if !points.isEmpty { member.servers = points }
        if let named { member.service = named }
        if let topic { member.topic = topic }
        if let token { member.token = token }
        try Self.check(member)
        return member
    }

    private static func check(_ member: PlayedMember) throws(CommandFailure) {
        if member.service == .apns, member.topic.isEmpty {
            throw CommandFailure(.usage, "A phone of Apple's needs its app's bundle id: give --topic.")
        }
    }
}

/// `sealbell device status unregister`.
struct DeviceUnregisterStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "unregister", abstract: "Has servers forget a phone, as a logout does.")

    @OptionGroup var place: PlayedMemberOptions

    func run(_ shell: Shell) async throws -> Ending {
        let member = try PlayedMember(file: place.path(shell))
        let kept = try orFail { () throws(DeviceError) in try member.phone(isToOpen: true) }
        guard !kept.isGone else { throw CommandFailure(.failed, "The phone is not registered.") }
        var device = try orFail { () throws(DeviceError) in try member.phone(isWanted: false) }
        device.retry()
        try await place.settle(member, device, shell)
        return .done
    }
}

/// `sealbell device status send`.
struct DeviceSendStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Has somebody's phones pushed to, as the sender of a message does.",
        discussion: """
            Looks for the person's contact code at the node's store, asks servers if there is none, and asks \
            a server for each phone. The text is read from standard input, or from --text-file, and sealed \
            to the person; without any the phone is told to fetch. Prints for how many phones it was taken.
            """)

    /// More is left out of a push anyway.
    private static let textBytes = 4_096

    @Option(help: ArgumentHelp("The person's public key, as register prints it.", valueName: "key"))
    var to: String

    @Option(help: ArgumentHelp("The file that holds the text.", valueName: "file"))
    var textFile: String?

    @OptionGroup var place: PlayedMemberOptions

    func validate() throws {
        guard StatusKeyFile.point(to) != nil else {
            throw ValidationError("--to: A public key, as sealbell device status register prints it.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        guard let person = StatusKeyFile.point(to) else { throw CommandFailure(.usage, "--to is no key.") }
        let member = try PlayedMember(file: place.path(shell))
        let text = try shell.content(of: textFile, orInputOf: Self.textBytes)
        var origin = try orFail { () throws(DeviceError) in
            var origin = try member.sender()
            // Ten seconds: whoever waits at a command line would rather wait than ask twice, on a slow
            // machine even longer. A late answer counts for a minute.
            origin.answerWait = min(shell.wait / 3, .seconds(45))
            _ = try origin.notify(
                StatusNotification(
                    messageID: Secret(shell.world.randomBytes(32)), .direct,
                    content: text.count > 0 ? text : nil),
                to: [person], at: shell.world.now())
            return origin
        }
        // What fails leaves the file as it was: whoever asks again sends it once.
        let outcome = try await place.line(member, shell).settle(&origin).first
        try member.keepOrigin(origin.kept)
        guard let outcome else { throw CommandFailure(.unavailable, "No server has answered.") }
        let phones = outcome.reached + outcome.missed
        guard phones > 0 else {
            throw CommandFailure(.failed, "The person has no phone that may be pushed to.")
        }
        shell.out("taken for \(outcome.reached) of \(phones) phones")
        return outcome.reached > 0 ? .done : .failed
    }
}

/// `sealbell device status open`.
struct DeviceOpenStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Opens a push that reached the phone.",
        discussion: """
            Reads the push from standard input, or from --file, as a push service delivered it: JSON with \
            encryptedMessage, chatId and publicKey, or with message, chat_id and installation_ids. With \
            --sandbox it fetches the push from there. Prints what it says, and the text that the sender has \
            put in.
            """)

    @OptionGroup var delivery: KitDelivery
    @OptionGroup var place: PlayedMemberOptions

    func run(_ shell: Shell) async throws -> Ending {
        let member = try PlayedMember(file: place.path(shell))
        let body = try await delivery.body(
            PlayedMember.limitBytes, for: member.token, isApple: member.service == .apns, shell)
        let delivered = try orFail { () throws(DeviceError) in try Delivered(json: body) }
        do {
            var device = try member.phone(isToOpen: true)
            switch try device.open(delivered, at: shell.world.now()) {
            case .show(let message):
                shell.out("message from \(message.author.map { StatusKeyFile.publicText($0) } ?? "nobody")")
                if let text = message.content {
                    shell.out(text.reveal { String(decoding: $0, as: UTF8.self) })
                }
                device.stored(message)
                try member.keep(device.kept)
            case .fetch: shell.out("to fetch")
            case .ignore(.repeated): shell.out("ignored: it came before")
            case .remove, .update, .ignore: shell.out("ignored: the account wants no pushes")
            }
            return .done
        } catch let error as DeviceError {
            guard error.code == .foreign, error.detail.isEmpty else {
                throw CommandFailure(.failed, error.sentence)
            }
            shell.out("ignored: for another account")
            return .done
        }
    }
}
