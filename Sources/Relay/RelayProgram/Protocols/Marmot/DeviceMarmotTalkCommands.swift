import AdminIngress
import ArgumentParser
import MarmotPublishing
import MarmotPush
import PushModel
import WireFormats

/// `sealbell device marmot trigger`.
struct DeviceTriggerMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "trigger", abstract: "Writes into a group, and wakes the others' phones.",
        discussion: """
            Looks up where each notification server listens, publishes a trigger to all relays of it, and \
            prints what each answered. The message is said whether or not anybody is woken. With --tor the \
            trigger goes through a SOCKS proxy, and the message does not. Ends with 69 when a server was not \
            reached.
            """)

    @Argument(help: "The message.")
    var text: String = "hello"

    @Option(
        help: ArgumentHelp("Tor's proxy, such as socks5://127.0.0.1:9050.", valueName: "url"))
    var tor: String?

    @OptionGroup var place: PlayedMarmotOptions

    private static let textBytes = 4_096

    func validate() throws {
        guard text.utf8.count <= Self.textBytes else {
            throw ValidationError("A message has at most \(Self.textBytes) bytes.")
        }
        guard tor.map({ SOCKSAddress($0) != nil }) ?? true else {
            throw ValidationError("--tor: An address such as socks5://127.0.0.1:9050.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let index = try place.index(talk.phone)
        _ = try await place.settle(&talk, index, shell)
        try await talk.say([talk.event(PlayedGroup.Kind.text, text, index)], index)
        try talk.phone.write()
        do {
            let reports = try await talk.wake(index, tor: tor.flatMap { SOCKSAddress($0) })
            try talk.phone.write()
            if reports.isEmpty { shell.out("nobody to wake: no other phone has told its token") }
            for report in reports { Self.tell(report, shell) }
            return .done
        } catch let missed as Unreached {
            try talk.phone.write()
            for report in missed.reached + missed.servers { Self.tell(report, shell) }
            let sentences = Set(missed.servers.compactMap(\.sentence)).sorted()
            throw CommandFailure(.unavailable, lines: sentences)
        }
    }

    private static func tell(_ report: WakeReport, _ shell: Shell) {
        let name = report.server.hex.prefix(12)
        let phones = counted(report.tokens, "token")
        shell.out(
            "server \(name): \(phones), \(report.accepted) of \(report.triggers) triggers published")
        for (url, answer) in report.relays { shell.out("  \(url): \(words(answer))") }
    }

    private static func words(_ answer: RelayAnswer) -> String {
        switch answer {
        case .accepted: "accepted"
        case .refused(let reason): reason.map { "refused: \($0.rawValue)" } ?? "refused"
        case .unfit: "takes no such event, by its own document"
        case .forbidden: "not dialled: no TLS, or a private address"
        case .unreachable: "unreachable"
        case .torFailed: "not reached through Tor"
        case .unanswered: "no answer"
        }
    }
}

/// `sealbell device marmot listen`.
struct DeviceListenMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen", abstract: "Follows a group, prints what is said, and answers who asks.",
        discussion: "Goes on until it is interrupted, the relay closes, or so many messages were printed.")

    @Option(help: ArgumentHelp("Ends after so many lines.", valueName: "lines"))
    var lines: Int?

    @OptionGroup var place: PlayedMarmotOptions

    func validate() throws {
        guard lines.map({ $0 > 0 }) ?? true else { throw ValidationError("--lines: At least 1.") }
    }

    func run(_ shell: Shell) async throws -> Ending {
        let talk = try place.talk(shell)
        let index = try place.index(talk.phone)
        let listener = MarmotListener(talk, index, lines: lines, shell)
        let isDone = await withTaskGroup(of: Bool.self) { group in
            group.addTask { await talk.follow(index) { await listener.take($0) } }
            group.addTask {
                await listener.ended()
                return true
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
        if let failure = await listener.failure { throw failure }
        guard isDone else { throw CommandFailure(.unavailable, "The relay ended the connection.") }
        return .done
    }
}

/// What a phone that listens knows, while two tasks look at it.
private actor MarmotListener {
    private var talk: MarmotTalk
    private let index: Int
    private var left: Int?
    private let shell: Shell
    private nonisolated let end = Bell()
    private(set) var failure: CommandFailure?

    init(_ talk: MarmotTalk, _ index: Int, lines: Int?, _ shell: Shell) {
        self.talk = talk
        self.index = index
        left = lines
        self.shell = shell
    }

    nonisolated func ended() async { await end.wait() }

    func take(_ events: [NostrEvent]) async {
        guard failure == nil, left != 0 else { return }
        var talk = self.talk
        var lines: [String] = []
        do throws(CommandFailure) {
            lines = try talk.take(events, index, answers: true)
            try await talk.work(index, ahead: MarmotLimits.answerDelay)
        } catch {
            failure = error
            end.ring()
        }
        self.talk = talk
        for line in lines where left != 0 {
            shell.out(line)
            left = left.map { $0 - 1 }
        }
        if left == 0 { end.ring() }
    }
}

/// `sealbell device marmot open`.
struct DeviceOpenMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Does what a woken phone does: it fetches.",
        discussion: """
            Reads the push from standard input, or from --file, as a push service delivered it, or from \
            --sandbox. There is nothing in it to open; what carries more than a wake is refused. Then prints \
            what is new in the phone's groups.
            """)

    @OptionGroup var delivery: KitDelivery
    @OptionGroup var place: PlayedMarmotOptions

    private static let pushBytes = 8 << 10

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let body = try await delivery.body(
            Self.pushBytes, for: talk.phone.token, isApple: talk.phone.service != .fcm, shell)
        do throws(DeviceError) {
            _ = try talk.phone.device(in: nil).open(try Self.delivered(body), at: shell.world.now())
        } catch {
            throw CommandFailure(.failed, "This is no wake of this protocol, which carries nothing.")
        }
        shell.out("woken")
        var isNew = false
        for index in talk.phone.groups.indices {
            for line in try await talk.hear(index, answers: false) {
                shell.out(line)
                isNew = true
            }
        }
        if !isNew { shell.out("nothing new") }
        try talk.phone.write()
        return .done
    }

    /// Of what Google was sent the app is given `data`.
    private static func delivered(_ body: Secret) throws(DeviceError) -> Delivered {
        // What is no JSON the library refuses.
        let push = body.reveal { try? JSONValue.parse($0, limitBytes: pushBytes) }
        let data = push?["message"]?["data"] ?? push?["data"]
        return try Delivered(json: data.map { Secret($0.serialized()) } ?? body)
    }
}

/// `sealbell device marmot leave`.
struct DeviceLeaveMarmotCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave", abstract: "Takes a phone's token back, and the phone out of a group.")

    @OptionGroup var place: PlayedMarmotOptions

    func run(_ shell: Shell) async throws -> Ending {
        var talk = try place.talk(shell)
        let index = try place.index(talk.phone)
        let name = talk.phone.groups[index].name
        _ = try await talk.hear(index, answers: false)
        // What fails leaves the phone in the group, so that it can be tried again.
        let said = try await talk.work(index, isWanted: false, keeps: false)
        try await talk.say([talk.event(PlayedGroup.Kind.left, "", index)], index)
        talk.phone.groups.remove(at: index)
        try talk.phone.write()
        shell.out(said.told == 0 ? "left group \(name)" : "left group \(name), token taken back")
        return .done
    }
}
