import ArgumentParser
import PushModel
import ZulipPush

/// `--for`, `--count`.
struct ListenSpan: ParsableArguments {
    @Option(name: .customLong("for"), help: ArgumentHelp("Ends after so long.", valueName: "seconds"))
    var seconds: Int?

    @Option(
        help: ArgumentHelp(
            "Ends when so many notifications were opened; with 1 if --for is over before.",
            valueName: "notifications"))
    var count: Int?

    var isEndless: Bool { seconds == nil && count == nil }

    func validate() throws {
        guard seconds.map({ (1...604_800).contains($0) }) ?? true else {
            throw ValidationError("--for: From 1 second to a week.")
        }
        guard count.map({ $0 > 0 }) ?? true else { throw ValidationError("--count: At least 1.") }
    }
}

/// `sealbell device zulip listen`.
struct DeviceListenZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen", abstract: "Follows the servers' events, and opens what arrives.",
        discussion: """
            Prints how each account stands when that changes, and does what an app does then: it registers \
            again what its server has lost. What a sandbox's push services deliver to the phone is opened \
            and printed; pushes of Apple and Google reach no command line. Goes on until it is interrupted.
            """)

    @Option(
        help: ArgumentHelp(
            "The state directory of the sandbox that delivers; else the one that join was given.",
            valueName: "directory"))
    var sandbox: String?

    @OptionGroup var span: ListenSpan
    @OptionGroup var options: PlayedZulipOptions

    func run(_ shell: Shell) async throws -> Ending {
        var played = try PlayedZulip(file: options.place.path(shell))
        if let sandbox { played.sandbox = joinPath(shell.facts.workingDirectory, sandbox) }
        let indices = try options.indices(played).filter { !played.accounts[$0].isForgotten }
        guard !indices.isEmpty else {
            throw CommandFailure(.failed, "No account is registered: sealbell device zulip join.")
        }
        guard span.count == nil || played.sandbox != nil else {
            throw CommandFailure(.usage, "--count: Give --sandbox, whose push services deliver.")
        }
        return try await ZulipListening(try options.place.phone(played, shell), indices, span)
            .run(started: false)
    }
}

/// A phone that listens: to each account's events, and to what a sandbox delivers.
struct ZulipListening: Sendable {
    private let phone: ZulipPhone
    private let indices: [Int]
    private let seconds: Int?
    private let count: Int?
    private var world: World { phone.shell.world }

    /// Between two looks at what was delivered, and at what is due.
    private static let pause = Duration.milliseconds(250)

    init(_ phone: ZulipPhone, _ indices: [Int], _ span: ListenSpan) {
        (self.phone, self.indices, seconds, count) = (phone, indices, span.seconds, span.count)
    }

    /// - Parameter started: the accounts have been started already.
    func run(started: Bool) async throws(CommandFailure) -> Ending {
        let directory = await phone.played.sandbox
        let sandbox = try directory.map { (directory) throws(CommandFailure) in
            try SandboxDeliveries(directory, phone.shell)
        }
        if !started { for index in indices { try await phone.start(index) } }
        let result = await withTaskGroup(of: Result<Ending, CommandFailure>.self) { group in
            for index in indices {
                group.addTask { await Self.outcome { () throws(CommandFailure) in try await follow(index) } }
            }
            group.addTask { await Self.outcome { () throws(CommandFailure) in try await tend(sandbox) } }
            if let seconds {
                group.addTask {
                    // Ends early only when another task has ended it all.
                    try? await world.sleep(world.instant() + .seconds(seconds))
                    return .success(count == nil ? .done : .failed)
                }
            }
            let first = await group.next() ?? .success(.done)
            group.cancelAll()
            return first
        }
        for index in indices { await phone.close(index) }
        return try result.get()
    }

    private static func outcome(
        _ work: () async throws(CommandFailure) -> Void
    ) async -> Result<Ending, CommandFailure> {
        do throws(CommandFailure) {
            try await work()
            return .success(.done)
        } catch { return .failure(error) }
    }

    /// Follows one account's events, until cancelled.
    ///
    /// - Throws: `CommandFailure` when going on makes no sense: the key is not good any more.
    private func follow(_ index: Int) async throws(CommandFailure) {
        var isHeard = true
        while !Task.isCancelled {
            if await phone.isUnseen(index) {
                await lose(index, &isHeard)
            } else {
                await phone.sayStatus(index)
            }
            switch try await phone.poll(index) {
            case .events:
                isHeard = true
                try await phone.work(index)
            case .over:
                isHeard = true
                await phone.say(index, "the server has closed the event queue; opens another")
                try await phone.work(index)
            case .unanswered: await lose(index, &isHeard)
            case nil:
                // The device says when to try again. Ends early only when cancelled.
                try? await world.sleep(world.instant() + Self.pause)
                try await phone.tick(index)
            }
        }
    }

    /// Says once that nobody answers.
    private func lose(_ index: Int, _ isHeard: inout Bool) async {
        guard isHeard, !Task.isCancelled else { return }
        isHeard = false
        await phone.say(index, "the server does not answer; tries again")
    }

    /// Timers, and what a sandbox delivers, until so many notifications were opened.
    private func tend(_ sandbox: SandboxDeliveries?) async throws(CommandFailure) {
        var opened = 0
        while !Task.isCancelled {
            for index in indices { try await phone.tick(index) }
            if let sandbox {
                opened += try await phone.receive(sandbox).opened
                if let count, opened >= count { return }
            }
            // As above.
            try? await world.sleep(world.instant() + Self.pause)
        }
    }
}

/// `sealbell device zulip open`.
struct DeviceOpenZulipCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Opens what reached the phone.",
        discussion: """
            Opens what the sandbox's push services delivered since the last time. With --file, and where \
            neither join nor this command was given a sandbox, it opens one push as a push service delivered \
            it, from that file or from standard input: APNs' body, FCM's data or whole message.
            """)

    @Option(
        help: ArgumentHelp("The file that holds the push; - is standard input.", valueName: "file"))
    var file: String?

    @Option(
        help: ArgumentHelp(
            "The state directory of the sandbox that delivers; else the one that join was given.",
            valueName: "directory"))
    var sandbox: String?

    @OptionGroup var place: PlayedZulipPlace

    func run(_ shell: Shell) async throws -> Ending {
        let phone = try place.phone(shell)
        let kept = await phone.played.sandbox
        let directory = sandbox.map { joinPath(shell.facts.workingDirectory, $0) } ?? kept
        guard file == nil, let directory else {
            let named = file == "-" ? nil : file
            let body = try shell.content(of: named, orInputOf: ZulipLimits.deliveredBytes + 1)
            return try await phone.open(body) ? .done : .failed
        }
        let (opened, others) = try await phone.receive(try SandboxDeliveries(directory, shell))
        if opened + others == 0 { shell.out("nothing new") }
        return others == 0 ? .done : .failed
    }
}
