import EventLoops
import MarmotPublishing
import MarmotPush
import NIOCore
import NIOPosix
import PushModel
import Secp256k1Keys
import WebClient
import WebSocket

/// A played phone at work: what it hears in its groups, what it says there, and whom it wakes.
struct MarmotTalk {
    var phone: PlayedMarmot
    /// The devices of this run, by the places of their groups: what one is to answer is in no file.
    private var devices: [Int: MarmotDevice] = [:]
    private let relay: NostrRelay
    private let reader: NostrReader
    private let line: NostrPublisher
    private let client: WebSocketClient
    private let authority: String?
    private let shell: Shell

    /// - Parameter authority: file of the authority to trust instead of the system's.
    /// - Throws: `CommandFailure` for a bad file or address.
    init(_ phone: PlayedMarmot, authority: String?, _ shell: Shell) throws(CommandFailure) {
        self.phone = phone
        self.authority = authority
        self.shell = shell
        let pem = try authority.map { (file) throws(CommandFailure) in
            try CredentialCache.read(file).reveal { Array($0) }
        }
        do throws(WebSocketError) {
            relay = try NostrRelay(phone.relay)
            client = try WebSocketClient(
                executor: LoopExecutor(MultiThreadedEventLoopGroup.singleton.next()), certificates: pem,
                world: shell.world)
        } catch {
            throw CommandFailure(.usage, error.sentence)
        }
        reader = NostrReader(client: client, world: shell.world)
        line = NostrPublisher(client: client, world: shell.world)
    }

    var patience: Duration { shell.wait }
    private var now: UnixTime { shell.world.now() }

    private static func filter(_ group: PlayedGroup) -> NostrFilter {
        .wraps(for: [group.pair.publicKey], since: nil)
    }

    // MARK: hearing

    /// Reads what was said in a group.
    ///
    /// - Parameter answers: whether requests of others are answered; else they wait for a command that does.
    /// - Returns: lines for the person.
    /// - Throws: `CommandFailure` when the relay does not answer.
    mutating func hear(_ index: Int, answers: Bool) async throws(CommandFailure) -> [String] {
        let group = phone.groups[index]
        let wraps = await reader.stored(
            Self.filter(group), at: relay, proving: group.pair, within: patience)
        guard let wraps else {
            throw CommandFailure(.unavailable, "The relay does not say what was said in the group.")
        }
        return try take(wraps, index, answers: answers)
    }

    /// Follows a group until the connection ends.
    func follow(_ index: Int, _ take: ([NostrEvent]) async -> Void) async -> Bool {
        let group = phone.groups[index]
        do throws(WebSocketError) {
            return try await reader.follow(Self.filter(group), at: relay, proving: group.pair, take)
        } catch { return error.code == .cancelled }
    }

    /// - Returns: lines for the person.
    /// - Throws: `CommandFailure` for a state file whose phone cannot be.
    mutating func take(
        _ wraps: [NostrEvent], _ index: Int, answers: Bool
    ) throws(CommandFailure) -> [String] {
        var lines: [String] = []
        var group = phone.groups[index]
        var device = try device(index)
        for said in group.open(wraps) {
            let sender = said.event.pubkey
            group.note(said)
            device.group = group.view(of: phone.pair.publicKey)
            let leaf = group.leaf(of: sender)
            switch said.event.kind {
            case NostrKind.tokenRequest...NostrKind.tokenRemoval:
                device.heard(
                    said.event.serialized(), leaf: leaf, epoch: 1, index: said.order.magnitude, at: now)
                // A request that is not answered now is heard once more by the command that does.
                if !answers, said.event.kind == NostrKind.tokenRequest { continue }
            case PlayedGroup.Kind.text where sender != phone.pair.publicKey:
                let text = said.event.content.reveal { String(decoding: $0, as: UTF8.self) }
                lines.append("group \(group.name): leaf \(leaf): \(text)")
            case PlayedGroup.Kind.joined: lines.append("group \(group.name): leaf \(leaf) joined")
            case PlayedGroup.Kind.left: lines.append("group \(group.name): leaf \(leaf) left")
            default: break
            }
            group.remember(said.id)
        }
        group.device = device.kept
        phone.groups[index] = group
        // One that is not to answer must not do so later in the run: it has heard requests all the same.
        devices[index] = answers ? device : nil
        return lines
    }

    /// The phone in a group, as it stands in this run.
    private func device(_ index: Int) throws(CommandFailure) -> MarmotDevice {
        let group = phone.groups[index]
        guard var device = devices[index] else {
            return try orFail { () throws(DeviceError) in try phone.device(in: group) }
        }
        device.group = group.view(of: phone.pair.publicKey)
        return device
    }

    // MARK: saying

    /// Says something in a group, in order.
    ///
    /// - Throws: `CommandFailure` when the relay does not take it.
    mutating func say(_ events: [NostrEvent], _ index: Int) async throws(CommandFailure) {
        for event in events {
            let wrap: NostrEvent
            do throws(MarmotError) {
                wrap = try phone.groups[index].wrap(event, by: phone.pair, shell.world)
            } catch { throw CommandFailure(.failed, error.sentence) }
            phone.groups[index].remember(wrap.id)
            let outcome = await line.publish(wrap, to: [relay], within: patience)
            guard outcome == [.accepted] else {
                throw CommandFailure(.unavailable, "The relay took no message of the group.")
            }
        }
    }

    func event(_ kind: Int, _ text: String = "", _ index: Int) -> NostrEvent {
        phone.groups[index].event(kind, text, by: phone.pair.publicKey, shell.world)
    }

    /// What a phone has said.
    struct Said {
        /// How many times it told or asked for tokens, and how many times others' tokens to who has asked.
        var (told, answers) = (0, 0)
    }

    /// Says what a phone has to say in a group: its token where the group does not know it, and answers; what
    /// the relay does not take it owes on.
    ///
    /// - Parameter ahead: what is due in so long is said now: whoever types a command has waited as long as
    ///   the protocol wants.
    /// - Parameter isWanted: whether it is told its token; else that there is none any more.
    /// - Parameter keeps: whether the file is written before each call and behind it.
    /// - Throws: `CommandFailure` when the relay does not take it.
    @discardableResult
    mutating func work(
        _ index: Int, ahead: Duration = .zero, isWanted: Bool = true, keeps: Bool = true,
        _ change: (inout MarmotDevice) -> Void = { _ in }
    ) async throws(CommandFailure) -> Said {
        var said = Said()
        let played = KitPhone(try device(index), shell.world, ahead: ahead)
        change(&played.device)
        try orFail { () throws(DeviceError) in
            try played.device.use(token: isWanted ? try phone.deviceToken() : nil)
        }
        try await played.work { (kept) throws(CommandFailure) in
            phone.groups[index].device = kept
            if keeps { try phone.write() }
        } send: { (call) throws(CommandFailure) in
            guard case .say(_, let rumor) = call.way else { return [.taken] }
            let event: NostrEvent
            do throws(MarmotError) { event = try NostrEvent.parse(rumor, .rumor) } catch {
                throw CommandFailure(.failed, error.sentence)
            }
            if event.kind == NostrKind.tokenList { said.answers += 1 } else { said.told += 1 }
            try await say([event], index)
            return [.taken]
        }
        devices[index] = played.device
        return said
    }

    // MARK: waking

    /// How many tokens each leaf of a group has told.
    func tokens(_ index: Int) throws(CommandFailure) -> [UInt32: Int] {
        let tokens = try device(index).tokens(at: now)
        return Dictionary(tokens.map { ($0.leaf, 1) }, uniquingKeysWith: +)
    }

    /// Wakes the others' phones.
    ///
    /// - Throws: `CommandFailure` for a proxy or an authority that cannot be used; `Unreached`.
    mutating func wake(_ index: Int, tor: SOCKSAddress?) async throws -> [WakeReport] {
        let tokens = try device(index).tokensToWake(at: now)
        var settings = MarmotPublisher.Settings(lookUp: [phone.relay])
        settings.tor = tor.map { MarmotPublisher.Tor(host: $0.host, port: $0.port) }
        // A sandbox's relay tells of others on the same machine, and a public one does not.
        settings.reachesLocalRelays = relay.address.isLoopback
        var options = WebOptions(extraAuthorities: authority.map { [$0] } ?? [])
        if relay.address.isLoopback {
            options.allowed = ["127.0.0.0/8", "::1/128"].compactMap { AddressBlock($0) }
        }
        let web = HTTPSFetch(options, group: MultiThreadedEventLoopGroup.singleton, world: shell.world)
        let publisher: MarmotPublisher
        do throws(PublishingError) {
            publisher = try MarmotPublisher(
                settings, keeping: phone.lists, client: client, web: web, world: shell.world)
        } catch { throw CommandFailure(.usage, error.sentence) }
        defer { phone.lists = publisher.kept() }
        return try await publisher.wake(tokens)
    }
}
