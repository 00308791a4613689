import NIOCore
import PushModel
import WebClient
import WireFormats
import ZulipPush

/// A played phone at work: it carries out what the device library says, and keeps what that knows.
actor ZulipPhone {
    private(set) var played: PlayedZulip
    /// Calls by which it has registered since the command began.
    private(set) var registrations = 0
    nonisolated let shell: Shell
    private let file: String
    private let web: HTTPSFetch
    private let marker: Secret
    private var random = SystemRandomNumberGenerator()
    /// Event queues that are open, by account.
    private var queues: [Int: Queue] = [:]
    /// What was said of each account's status last.
    private var said: [Int: String] = [:]

    /// What a server said to a call.
    struct Told {
        let kind: ZulipDeviceCall.Kind
        let status: Int?
    }

    /// An event queue at a server.
    private struct Queue {
        let id: String
        var last: Int64
    }

    /// - Throws: `CommandFailure` for a marker that cannot be read.
    init(
        _ played: PlayedZulip, file: String, web: HTTPSFetch, _ shell: Shell
    ) throws(CommandFailure) {
        (self.played, self.file, self.web, self.shell) = (played, file, web, shell)
        marker = try PlayedMarker.keep(beside: file)
    }

    func keep() throws(CommandFailure) { try played.write(file) }

    func change(_ change: (inout PlayedZulip) -> Void) { change(&played) }

    func line(_ index: Int) -> ZulipLine { ZulipLine(played.accounts[index], web, shell) }

    func status(_ index: Int) -> ZulipStatus {
        ZulipRoutine.status(of: played.accounts[index].device, now: shell.world.now())
    }

    /// A line for the person, which names the account where there are several.
    func say(_ index: Int, _ text: String) {
        shell.out(played.accounts.count > 1 ? "\(played.accounts[index].user): \(text)" : text)
    }

    // MARK: the routine

    /// Starts an account, as an app does.
    ///
    /// - Returns: how it registers at this server; `nil` where the server did not say what it can do.
    @discardableResult
    func start(_ index: Int) async throws(CommandFailure) -> ZulipRoute? {
        let answer = await line(index).settings()
        let account = played.accounts[index]
        let build: ZulipAppBuild
        do throws(ZulipError) {
            build = try ZulipAppBuild(
                bouncerKey: played.bouncerKey,
                profiles: account.profile.map { [$0] } ?? ZulipProfile.preference)
        } catch { throw CommandFailure(.usage, "--bouncer-key: \(error.sentence)") }
        // A page that is none of this protocol's says nothing.
        let settings = answer.status == 200 ? try? ZulipServerSettings(answer.body) : nil
        var route: ZulipRoute?
        if let settings {
            let found = ZulipRoutine.route(
                serverSettings: settings, profiles: build.profiles,
                requireEndToEnd: account.requiresEncryption)
            if case .encrypted(let profile) = found { played.accounts[index].spoken = profile }
            route = found
        } else {
            say(index, "server: \(answer.words) when asked what it can do")
        }
        try await take(
            index,
            .start(
                ZulipStart(
                    serverSettings: settings, build: build, token: played.push(),
                    requireEndToEnd: account.requiresEncryption, marker: marker)))
        return route
    }

    /// Takes what has happened to an account, keeps it, and does what follows.
    ///
    /// - Returns: what the server said to each call.
    @discardableResult
    func take(_ index: Int, _ event: ZulipDeviceEvent) async throws(CommandFailure) -> [Told] {
        var told: [Told] = []
        var events = [event]
        // Ends: a call is answered once, and what an answer asks for at once is one more call at most.
        while !events.isEmpty {
            let actions = try step(index, events.removeFirst())
            try keep()
            for action in actions {
                switch action {
                case .call(let call):
                    let answer = await line(index).make(call)
                    say(index, "\(ZulipWords.call(call.kind)): \(answer.words)")
                    told.append(Told(kind: call.kind, status: answer.status))
                    if call.kind == .register { registrations += 1 }
                    if call.kind == .register || call.kind == .addDevice {
                        events.append(.answer(call: call.number, answer.ofDevice))
                    }
                case .notice(let notice): say(index, ZulipWords.sentence(notice))
                case .legacy:
                    say(
                        index,
                        "The server has no encrypted notifications of a kind that this phone speaks. An app "
                            + "may register without encryption now; this command does not.")
                case .timer, .endNotice, .endLegacy: break
                }
            }
        }
        return told
    }

    private func step(
        _ index: Int, _ event: ZulipDeviceEvent
    ) throws(CommandFailure) -> [ZulipDeviceAction] {
        var others = played.accounts.map(\.device)
        others.remove(at: index)
        do throws(ZulipError) {
            let actions = try played.accounts[index].device.take(
                event, now: shell.world.now(), beside: others, using: &random)
            for case .call(let call) in actions where call.kind == .register {
                let name = call.profile == .v12 ? "device_id" : "push_account_id"
                let id = call.fields.first { $0.name == name }?.value
                played.accounts[index].registration = id.map { id in
                    id.reveal { String(decoding: $0, as: UTF8.self) }
                }
            }
            return actions
        } catch {
            throw CommandFailure(error.code == .malformedAnswer ? .unavailable : .failed, error.sentence)
        }
    }

    // MARK: what the server shows

    /// Fetches the state, and opens an event queue beside it.
    ///
    /// - Throws: `CommandFailure` when the server does not give it.
    func fetch(_ index: Int) async throws(CommandFailure) {
        await close(index)
        let answer = await line(index).openQueue()
        try await check(answer, index)
        guard let json = answer.success(limitBytes: ZulipLine.stateBytes),
            let id = json["queue_id"]?.string, id.utf8.count <= 256
        else {
            throw CommandFailure(.unavailable, "The server does not show the state: \(answer.words).")
        }
        queues[index] = Queue(id: id, last: json["last_event_id"]?.int64 ?? -1)
        try await take(index, .state(answer.body))
    }

    /// What became of a poll.
    enum Polled {
        case events
        /// The server does not know the queue any more, or there was none.
        case over
        case unanswered(ZulipLine.Answer)
    }

    /// Waits for the next events.
    func poll(_ index: Int) async throws(CommandFailure) -> Polled {
        guard let queue = queues[index] else { return .over }
        let answer = await line(index).events(queue.id, after: queue.last)
        try await check(answer, index)
        if let json = answer.success(limitBytes: ZulipLine.stateBytes) {
            let ids = (json["events"]?.array ?? []).compactMap { $0["id"]?.int64 }
            // Events that cannot be taken are asked for no more: the next state has what they say.
            queues[index]?.last = max(queue.last, ids.max() ?? queue.last)
            try await take(index, .events(answer.body))
            return .events
        }
        // As above: no JSON has no code.
        let json = answer.body.reveal { try? JSONValue.parse($0, limitBytes: ZulipLine.answerBytes) }
        guard json?["code"]?.string == "BAD_EVENT_QUEUE_ID" else { return .unanswered(answer) }
        queues[index] = nil
        return .over
    }

    /// Closes an account's event queue, best effort.
    func close(_ index: Int) async {
        guard let queue = queues.removeValue(forKey: index) else { return }
        await line(index).close(queue.id)
    }

    private func check(_ answer: ZulipLine.Answer, _ index: Int) async throws(CommandFailure) {
        guard answer.status == 401 else { return }
        try await take(index, .keyRefused)
        throw CommandFailure(.failed, "The server does not take this user's key.")
    }

    /// Follows events until the registration is confirmed or refused, or the shell's patience is over.
    func settle(_ index: Int) async throws(CommandFailure) -> ZulipStatus {
        let end = shell.world.instant() + .nanoseconds(shell.patience.nanoseconds)
        try await fetch(index)
        polling: while status(index).state == .pending {
            let polled = await shell.world.untilEnd(end) { () -> Result<Polled, CommandFailure> in
                do throws(CommandFailure) { return .success(try await self.poll(index)) } catch {
                    return .failure(error)
                }
            }
            switch try polled?.get() {
            case .events: break
            case .over: try await fetch(index)
            case .unanswered, nil: break polling
            }
        }
        await close(index)
        return status(index)
    }

    /// Says how an account stands, where that is another than what was said last.
    func sayStatus(_ index: Int) {
        let status = status(index)
        let code = status.errorCode.map { " (\($0))" } ?? ""
        let text = "\(status.state.rawValue)\(code): \(ZulipWords.sentence(status))"
        guard said[index] != text else { return }
        said[index] = text
        say(index, text)
    }

    /// The time has come that the device waits for.
    func tick(_ index: Int) async throws(CommandFailure) {
        guard let deadline = played.accounts[index].device.nextDeadline, deadline <= shell.world.now() else {
            return
        }
        try await take(index, .tick)
    }

    // MARK: what arrives

    /// Opens a push as a push service delivered it.
    ///
    /// - Returns: whether it opened.
    func open(_ delivered: Secret) -> Bool {
        do throws(ZulipError) {
            let found = try ZulipRoutine.open(
                delivered: delivered, for: played.accounts.map(\.device), now: shell.world.now())
            shell.out("\(played.accounts[found.place].user): \(ZulipWords.text(found.notification))")
            return true
        } catch {
            shell.err("Not opened: \(error.sentence)")
            return false
        }
    }

    /// Opens what a sandbox's push services accepted since the last time.
    ///
    /// - Returns: how many opened, and how many did not.
    func receive(
        _ sandbox: SandboxDeliveries
    ) async throws(CommandFailure) -> (opened: Int, others: Int) {
        var seen = played.seen
        let bodies = try await sandbox.read(for: played, &seen)
        guard seen != played.seen else { return (0, 0) }
        played.seen = seen
        try keep()
        let opened = bodies.count { open($0) }
        return (opened, bodies.count - opened)
    }
}

extension World {
    /// The result, or `nil` when it does not come by then.
    func untilEnd<Found: Sendable>(
        _ end: ContinuousClock.Instant, _ work: @escaping @Sendable () async -> Found
    ) async -> Found? {
        await withTaskGroup(of: Found?.self) { group in
            group.addTask { await work() }
            group.addTask {
                // Ends early only when the result has come.
                try? await sleep(end)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }
}
