import PushModel
import SealbellKit
import WireFormats
import ZulipPush

/// A played phone at work: it makes the calls that its devices say, and keeps what they know. It has an event
/// queue of its own for each account, as an app has that shows messages.
actor ZulipPhone {
    private(set) var played: PlayedZulip
    /// Calls by which it has registered since the command began.
    private(set) var registrations = 0
    nonisolated let shell: Shell
    private let wire: KitWire
    private let marker: Secret
    private var random = SystemRandomNumberGenerator()
    /// Of the accounts that were looked at, by account.
    private var phones: [Int: KitPhone<ZulipDevice>] = [:]
    /// Event queues that are open, by account.
    private var queues: [Int: Queue] = [:]
    /// What was said of each account's status last.
    private var said: [Int: String] = [:]

    /// An event queue at a server.
    private struct Queue {
        let id: String
        var last: Int64
    }

    /// - Throws: `CommandFailure` for a marker that cannot be read.
    init(_ played: PlayedZulip, _ wire: KitWire, _ shell: Shell) throws(CommandFailure) {
        (self.played, self.wire, self.shell) = (played, wire, shell)
        marker = try PlayedMarker.keep(beside: played.file.path)
    }

    func keep() throws(CommandFailure) { try played.write() }

    /// Takes an account out; those behind it move up.
    func remove(_ index: Int) {
        played.accounts.remove(at: index)
        (phones, queues, said) = ([:], [:], [:])
    }

    func line(_ index: Int) -> ZulipLine { ZulipLine(played.accounts[index], wire) }

    /// The account's device at work, out of what was kept.
    ///
    /// - Throws: `CommandFailure` for what it has not kept.
    private func phone(_ index: Int) throws(CommandFailure) -> KitPhone<ZulipDevice> {
        if let phone = phones[index] { return phone }
        let account = played.accounts[index]
        do throws(DeviceError) {
            let login = try ZulipLogin(
                realmURL: account.realmURL, userID: account.userID, email: account.user,
                apiKey: account.apiKey, relayKey: RelayKey(text: played.bouncerKey),
                bundleID: played.appID ?? Self.unusedBundle, serverURL: account.url,
                profiles: account.profile.map { [$0] } ?? ZulipProfile.preference,
                requireEndToEnd: account.requiresEncryption, marker: marker, asksForEvents: .never)
            let device = try ZulipDevice(login, keeping: account.kept, using: &random)
            let phone = KitPhone(device, shell.world)
            phones[index] = phone
            return phone
        } catch {
            let words =
                error.code == .malformedKept
                ? "\(played.file.path) holds no phone of this command's" : error.sentence
            throw CommandFailure(.failed, words)
        }
    }

    /// A phone of FCM's has no bundle id, and tells none.
    private static let unusedBundle = "none"

    /// Changes a device; what it refuses changes nothing.
    private func change(
        _ index: Int, _ body: (inout ZulipDevice, UnixTime) throws(DeviceError) -> Void
    ) throws(CommandFailure) {
        let phone = try phone(index)
        var device = phone.device
        do throws(DeviceError) { try body(&device, shell.world.now()) } catch {
            throw CommandFailure(error.code == .malformedContent ? .unavailable : .failed, error.sentence)
        }
        phone.device = device
        note(device, index)
    }

    /// What the file has of a device.
    private func note(_ device: ZulipDevice, _ index: Int) {
        played.accounts[index].kept = device.kept
        if case .encrypted(let profile) = device.route { played.accounts[index].spoken = profile }
    }

    func status(_ index: Int) throws(CommandFailure) -> DeviceStatus {
        try phone(index).device.status(at: shell.world.now())
    }

    /// A line for the person, which names the account where there are several.
    func say(_ index: Int, _ text: String) {
        shell.out(played.accounts.count > 1 ? "\(played.accounts[index].user): \(text)" : text)
    }

    // MARK: the loop of an app

    /// Starts an account, as an app does.
    ///
    /// - Returns: how it registers at this server; `nil` where the server did not say what it can do.
    @discardableResult
    func start(_ index: Int) async throws(CommandFailure) -> ZulipRoute? {
        phones[index] = nil
        let token = try played.push()
        try change(index) { (device, _) throws(DeviceError) in try device.use(token: token) }
        try await work(index)
        let route = try phone(index).device.route
        if let words = route.flatMap({ ZulipWords.sentence($0) }) { say(index, words) }
        return route
    }

    /// Makes the calls that are due, until none is, and keeps what the device knows before each of them.
    ///
    /// - Returns: the status of each answer that is not about the server's settings; `nil` where nobody
    ///   answered.
    @discardableResult
    func work(_ index: Int) async throws(CommandFailure) -> [Int?] {
        var told: [Int?] = []
        let phone = try phone(index)
        try await phone.work { (_) throws(CommandFailure) in
            note(phone.device, index)
            try keep()
        } send: { (call) throws(CommandFailure) in
            guard let http = call.http else { return [] }
            note(http, index)
            let reply = await wire.reply(to: call)
            let words = ZulipWords.call(http)
            if words != "server" {
                say(index, "\(words): \(reply.words)")
                told.append(reply.status)
            } else if reply.status != 200 {
                say(index, "server: \(reply.words) when asked what it can do")
            }
            return [reply.answer]
        }
        return told
    }

    /// How the server will know a registration that is told.
    private func note(_ call: HTTPCall, _ index: Int) {
        guard ZulipWords.call(call) == "registration" else { return }
        registrations += 1
        // The device's own form.
        let form = call.body.reveal { try? Form.parse($0) }
        let id = form?.text("device_id") ?? form?.text("push_account_id")
        played.accounts[index].registration = id
    }

    /// Registers once more, as when a user asks for it.
    func registerAgain(_ index: Int) async throws(CommandFailure) {
        try change(index) { (device, _) in device.registerAgain() }
        try await work(index)
    }

    /// Has the server forget the phone, and puts a new device in the place of the account's.
    ///
    /// - Returns: the status of each answer, of which there are none where nothing was registered.
    func forget(_ index: Int) async throws(CommandFailure) -> [Int?] {
        try change(index) { (device, _) throws(DeviceError) in try device.use(token: nil) }
        let told = try await work(index)
        phones[index] = nil
        played.accounts[index].kept = nil
        played.accounts[index].isForgotten = true
        played.accounts[index].registration = nil
        return told
    }

    /// What the server shows, as the account's device takes it; then what follows.
    private func see(
        _ index: Int, _ body: (inout ZulipDevice, UnixTime) throws(DeviceError) -> Void
    ) async throws(CommandFailure) {
        try change(index, body)
        try await work(index)
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
        try await see(index) { (device, now) throws(DeviceError) in
            try device.see(state: answer.body, at: now)
        }
    }

    /// What became of a poll.
    enum Polled {
        case events
        /// The server does not know the queue any more, or there was none.
        case over
        case unanswered
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
            try await see(index) { (device, now) throws(DeviceError) in
                try device.see(events: answer.body, at: now)
            }
            return .events
        }
        guard answer.json(limitBytes: ZulipLine.answerBytes)?["code"]?.string == "BAD_EVENT_QUEUE_ID" else {
            return .unanswered
        }
        queues[index] = nil
        return .over
    }

    /// Closes an account's event queue, best effort.
    func close(_ index: Int) async {
        guard let queue = queues.removeValue(forKey: index) else { return }
        await line(index).close(queue.id)
    }

    private func check(_ answer: KitReply, _ index: Int) async throws(CommandFailure) {
        guard answer.status == 401 else { return }
        try await see(index) { (device, now) throws(DeviceError) in device.seeRefusedLogin(at: now) }
        sayStatus(index)
        throw CommandFailure(.failed, "The server does not take this user's key.")
    }

    /// Follows events until the registration is confirmed or refused, or the shell's patience is over.
    func settle(_ index: Int) async throws(CommandFailure) -> DeviceStatus {
        let end = shell.world.instant() + shell.wait
        try await fetch(index)
        polling: while try status(index).state == .pending {
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
        return try status(index)
    }

    /// Says how an account stands, where that is another than what was said last.
    func sayStatus(_ index: Int) {
        // A device that cannot be made has said so before.
        guard let status = try? status(index) else { return }
        let code = status.detail.map { " (\($0))" } ?? ""
        let text = "\(status.state.rawValue)\(code): \(ZulipWords.sentence(status))"
        guard said[index] != text else { return }
        said[index] = text
        say(index, text)
    }

    /// The time has come that the device waits for.
    func tick(_ index: Int) async throws(CommandFailure) {
        guard let due = try phone(index).device.nextDue, due <= shell.world.now() else { return }
        try await work(index)
    }

    // MARK: what arrives

    /// Opens a push as a push service delivered it.
    ///
    /// - Returns: whether it opened.
    func open(_ delivered: Secret) throws(CommandFailure) -> Bool {
        var all: [ZulipDevice] = []
        for index in played.accounts.indices { all.append(try phone(index).device) }
        do throws(DeviceError) {
            let found = try ZulipDevice.open(Delivered(json: delivered), among: all, at: shell.world.now())
            shell.out("\(played.accounts[found.place].user): \(ZulipWords.text(found.opened.content))")
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
        var opened = 0
        for body in bodies where try open(body) { opened += 1 }
        return (opened, bodies.count - opened)
    }
}

extension ZulipDevice: KitTalker {}
