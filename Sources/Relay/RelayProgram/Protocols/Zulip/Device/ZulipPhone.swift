import PushModel
import SealbellKit
import WireFormats
import ZulipPush

/// A played phone at work: it makes the calls that its devices say, and keeps what they know. Its devices
/// listen to their servers, as those of an app that is open; events are waited for apart (``poll(_:)``).
actor ZulipPhone {
    private(set) var played: PlayedZulip
    /// Calls by which it has registered since the command began.
    private(set) var registrations = 0
    nonisolated let shell: Shell
    let wire: KitWire
    private let marker: Secret
    private var random = SystemRandomNumberGenerator()
    /// Of the accounts that were looked at, by account.
    private var phones: [Int: KitPhone<ZulipDevice>] = [:]
    /// Questions for events that nobody has made yet, by account: each waits at its server.
    private var polls: [Int: Call] = [:]
    /// What came back in place of the state, by account.
    private var unseen: [Int: String] = [:]
    /// What was said of each account's status last.
    private var said: [Int: String] = [:]

    /// - Throws: `CommandFailure` for a marker that cannot be read.
    init(_ played: PlayedZulip, _ wire: KitWire, _ shell: Shell) throws(CommandFailure) {
        (self.played, self.wire, self.shell) = (played, wire, shell)
        marker = try PlayedMarker.keep(beside: played.file.path)
    }

    func keep() throws(CommandFailure) { try played.write() }

    /// Takes an account out; those behind it move up.
    func remove(_ index: Int) {
        played.accounts.remove(at: index)
        (phones, polls, unseen, said) = ([:], [:], [:], [:])
    }

    /// The account's device at work, out of what was kept.
    ///
    /// - Throws: `CommandFailure` for what it has not kept.
    func phone(_ index: Int) throws(CommandFailure) -> KitPhone<ZulipDevice> {
        if let phone = phones[index] { return phone }
        let account = played.accounts[index]
        do throws(DeviceError) {
            let login = try ZulipLogin(
                realmURL: account.realmURL, userID: account.userID, email: account.user,
                apiKey: account.apiKey, relayKey: RelayKey(text: played.bouncerKey),
                bundleID: played.appID ?? Self.unusedBundle, serverURL: account.url,
                profiles: account.profile.map { [$0] } ?? ZulipProfile.preference,
                requireEndToEnd: account.requiresEncryption, marker: marker, asksForEvents: .always)
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
        _ index: Int, _ body: (inout ZulipDevice) throws(DeviceError) -> Void
    ) throws(CommandFailure) {
        let phone = try phone(index)
        try orFail { () throws(DeviceError) in try body(&phone.device) }
        note(phone.device, index)
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

    /// Starts an account, as an app does: it registers what is due, and looks at what the server shows.
    ///
    /// - Returns: how it registers at this server; `nil` where the server did not say what it can do.
    @discardableResult
    func start(_ index: Int) async throws(CommandFailure) -> ZulipRoute? {
        (phones[index], polls[index], unseen[index]) = (nil, nil, nil)
        let token = try played.push()
        try change(index) { (device) throws(DeviceError) in try device.use(token: token) }
        try await work(index)
        let route = try phone(index).device.route
        if let words = route.flatMap({ ZulipWords.sentence($0) }) { say(index, words) }
        return route
    }

    /// Makes the calls that are due, until none is, and keeps what the device knows before each of them. A
    /// question for events is left to ``poll(_:)``.
    ///
    /// - Returns: the status of each answer about a registration; `nil` where nobody answered.
    /// - Throws: `CommandFailure` where going on makes no sense: the key is not good any more.
    @discardableResult
    func work(_ index: Int) async throws(CommandFailure) -> [Int?] {
        var told: [Int?] = []
        let phone = try phone(index)
        try await phone.work { (_) throws(CommandFailure) in
            note(phone.device, index)
            try keep()
        } send: { (call) throws(CommandFailure) in
            guard let http = call.http else { return [] }
            let aim = ZulipWords.aim(of: http)
            if aim == .events, http.method == "GET" {
                polls[index] = call
                return []
            }
            note(http, index)
            let reply = await wire.reply(to: call)
            switch aim {
            case .settings where reply.status != 200:
                say(index, "server: \(reply.words) when asked what it can do")
            case .settings, .events: break
            case .state:
                let state = reply.success(limitBytes: ZulipLine.stateBytes)
                unseen[index] = state?["queue_id"]?.string == nil ? reply.words : nil
            case .device, .registration, .forget:
                say(index, "\(aim.rawValue): \(reply.words)")
                told.append(reply.status)
            }
            return [reply.answer]
        }
        guard try status(index).advice == .logInAgain else { return told }
        sayStatus(index)
        throw CommandFailure(.failed, "The server does not take this user's key.")
    }

    /// How the server will know a registration that is told.
    private func note(_ call: HTTPCall, _ index: Int) {
        guard ZulipWords.aim(of: call) == .registration else { return }
        registrations += 1
        // The device's own form.
        let form = call.body.reveal { try? Form.parse($0) }
        let id = form?.text("device_id") ?? form?.text("push_account_id")
        played.accounts[index].registration = id
    }

    /// Registers once more, as when a user asks for it.
    func registerAgain(_ index: Int) async throws(CommandFailure) {
        try change(index) { $0.registerAgain() }
        try await work(index)
    }

    /// Has the server forget the phone, and puts a new device in the place of the account's.
    ///
    /// - Returns: the status of each answer, of which there are none where nothing was registered.
    func forget(_ index: Int) async throws(CommandFailure) -> [Int?] {
        try change(index) { (device) throws(DeviceError) in try device.use(token: nil) }
        let told = try await work(index)
        phones[index] = nil
        played.accounts[index].kept = nil
        played.accounts[index].isForgotten = true
        played.accounts[index].registration = nil
        return told
    }

    // MARK: what the server shows

    /// Whether the server was asked for the state, and did not give it.
    func isUnseen(_ index: Int) -> Bool { unseen[index] != nil }

    /// - Throws: `CommandFailure` where the server did not give the state.
    func expectState(_ index: Int) throws(CommandFailure) {
        guard let words = unseen[index] else { return }
        throw CommandFailure(.unavailable, "The server does not show the state: \(words).")
    }

    /// What became of a question for events.
    enum Polled {
        case events
        /// The server does not know the queue any more.
        case over
        case unanswered
    }

    /// Waits for the next events, where the device asks for some. What follows from them is ``work(_:)``'s.
    ///
    /// - Returns: `nil` where it asks for none now.
    /// - Throws: as ``work(_:)``.
    func poll(_ index: Int) async throws(CommandFailure) -> Polled? {
        guard let call = polls.removeValue(forKey: index) else { return nil }
        let reply = await wire.reply(to: call)
        try phone(index).device.answered(reply.answer, to: call, at: shell.world.now())
        if reply.status == 401 { try await work(index) }
        if reply.success(limitBytes: ZulipLine.stateBytes) != nil { return .events }
        let code = reply.json(limitBytes: ZulipLine.answerBytes)?["code"]?.string
        return code == "BAD_EVENT_QUEUE_ID" ? .over : .unanswered
    }

    /// Closes an account's event queue.
    func close(_ index: Int) async {
        polls[index] = nil
        guard let phone = phones[index] else { return }
        phone.device.closeEvents()
        // A queue that the server does not hear of it closes by itself, after some minutes.
        _ = try? await work(index)
    }

    /// Follows events until the registration is confirmed or refused, or the shell's patience is over.
    ///
    /// - Parameter listens: the command goes on with the event queue.
    /// - Throws: `CommandFailure` where the server does not give the state, and as ``work(_:)``.
    func settle(
        _ index: Int, thenListens listens: Bool = false
    ) async throws(CommandFailure) -> DeviceStatus {
        let end = shell.world.instant() + shell.wait
        try expectState(index)
        while try status(index).state == .pending {
            let polled = await shell.world.untilEnd(end) { () -> Result<Polled?, CommandFailure> in
                do throws(CommandFailure) { return .success(try await self.poll(index)) } catch {
                    return .failure(error)
                }
            }
            guard let polled = try polled?.get(), polled != .unanswered else { break }
            try await work(index)
            try expectState(index)
        }
        if !listens { await close(index) }
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
        let bodies = try await sandbox.read(
            for: played.token, isApple: played.service == .apns, &seen)
        guard seen != played.seen else { return (0, 0) }
        played.seen = seen
        try keep()
        var opened = 0
        for body in bodies where try open(body) { opened += 1 }
        return (opened, bodies.count - opened)
    }
}

extension ZulipDevice: KitTalker {}
