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
    private let relay: NostrRelay
    private let reader: NostrReader
    private let line: NostrPublisher
    private let client: WebSocketClient
    private let authority: String?
    private let shell: Shell
    private var random = SystemRandomNumberGenerator()

    /// - Parameter authority: file of the authority to trust instead of the system's.
    /// - Throws: `CommandFailure` for a bad file or address.
    init(_ phone: PlayedMarmot, authority: String?, _ shell: Shell) throws(CommandFailure) {
        self.phone = phone
        self.authority = authority
        self.shell = shell
        let pem = try authority.map { (file) throws(CommandFailure) in
            try CredentialShelf.read(file).reveal { Array($0) }
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

    var patience: Duration { .nanoseconds(shell.patience.nanoseconds) }
    private var now: Moment { Moment(wall: shell.world.now(), instant: shell.world.instant()) }

    private static func filter(_ group: PlayedGroup) -> NostrFilter {
        .wraps(for: [group.pair.publicKey], since: nil)
    }

    // MARK: hearing

    /// What a command does with what it hears.
    struct Heard {
        /// Lines for the person.
        var lines: [String] = []
        /// What is to be said now.
        var answers: [NostrEvent] = []
    }

    /// Reads what was said in a group.
    ///
    /// - Parameter answers: whether requests of others are answered; else they wait for a command that does.
    /// - Throws: `CommandFailure` when the relay does not answer.
    mutating func hear(_ index: Int, answers: Bool) async throws(CommandFailure) -> Heard {
        let group = phone.groups[index]
        let wraps = await reader.stored(
            Self.filter(group), at: relay, proving: group.pair, within: patience)
        guard let wraps else {
            throw CommandFailure(.unavailable, "The relay does not say what was said in the group.")
        }
        return take(wraps, index, answers: answers)
    }

    /// Follows a group until the connection ends.
    func follow(_ index: Int, _ take: ([NostrEvent]) async -> Void) async -> Bool {
        let group = phone.groups[index]
        do throws(WebSocketError) {
            return try await reader.follow(Self.filter(group), at: relay, proving: group.pair, take)
        } catch { return error.code == .cancelled }
    }

    mutating func take(_ wraps: [NostrEvent], _ index: Int, answers: Bool) -> Heard {
        var heard = Heard()
        var group = phone.groups[index]
        var device = phone.device(in: group, now: now.wall)
        for said in group.open(wraps) {
            let sender = said.event.pubkey
            if let left = group.note(said) { _ = device.removed(leaves: [left]) }
            let view = group.view(of: phone.pair.publicKey)
            let leaf = group.leaf(of: sender)
            switch said.event.kind {
            case NostrKind.tokenRequest...NostrKind.tokenRemoval:
                let order = MessageOrder(epoch: 1, index: UInt64(said.order))
                let message = GroupMessage(said.event, senderLeaf: leaf, order: order)
                _ = device.receive(message, in: view, now: now, using: &random)
                // A request that is not answered now is heard once more by the command that does.
                if !answers, said.event.kind == NostrKind.tokenRequest { continue }
            case PlayedGroup.Kind.text where sender != phone.pair.publicKey:
                let text = said.event.content.reveal { String(decoding: $0, as: UTF8.self) }
                heard.lines.append("group \(group.name): leaf \(leaf): \(text)")
            case PlayedGroup.Kind.joined: heard.lines.append("group \(group.name): leaf \(leaf) joined")
            case PlayedGroup.Kind.left: heard.lines.append("group \(group.name): leaf \(leaf) left")
            default: break
            }
            group.remember(said.id)
        }
        if answers {
            // Whoever types a command has waited as long as the protocol wants.
            let later = Moment(wall: now.wall, instant: now.instant + MarmotLimits.answerDelay)
            heard.answers =
                device.due(at: later, in: group.view(of: phone.pair.publicKey), using: &random)
                .events
        }
        group.tokens = device.tokens
        phone.groups[index] = group
        return heard
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

    /// Tells the group this phone's token, or asks for the others' where it has none.
    ///
    /// - Returns: what is to be said.
    mutating func registration(_ index: Int, hasJoined: Bool) throws(CommandFailure) -> [NostrEvent] {
        var group = phone.groups[index]
        var device = phone.device(in: group, now: now.wall)
        let view = group.view(of: phone.pair.publicKey)
        do throws(MarmotError) {
            guard let target = try phone.target() else {
                return hasJoined ? device.ask(in: view, now: now, using: &random).events : []
            }
            let due = try device.register(
                target, hasJoined ? .joined : .started, in: view, now: now, using: &random)
            group.tokens = device.tokens
            phone.groups[index] = group
            return due.events
        } catch {
            throw CommandFailure(.failed, error.sentence)
        }
    }

    mutating func request(_ index: Int) -> [NostrEvent] {
        let group = phone.groups[index]
        return phone.device(in: group, now: now.wall)
            .ask(in: group.view(of: phone.pair.publicKey), now: now, using: &random).events
    }

    mutating func withdrawal(_ index: Int) -> [NostrEvent] {
        var group = phone.groups[index]
        var device = phone.device(in: group, now: now.wall)
        let due = device.optOut(in: group.view(of: phone.pair.publicKey), now: now, using: &random)
        group.tokens = device.tokens
        phone.groups[index] = group
        return due.events
    }

    // MARK: waking

    /// Tokens of the others' phones.
    func others(_ index: Int) -> [GossipToken] {
        let group = phone.groups[index]
        return MarmotOrigin.choose(
            from: group.tokens, in: group.view(of: phone.pair.publicKey), sender: phone.pair.publicKey,
            now: now.wall)
    }

    /// Wakes the others' phones.
    ///
    /// - Throws: `CommandFailure` for a proxy or an authority that cannot be used; `Unreached`.
    mutating func wake(_ index: Int, tor: SOCKSAddress?) async throws -> [WakeReport] {
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
        return try await publisher.wake(others(index))
    }
}
