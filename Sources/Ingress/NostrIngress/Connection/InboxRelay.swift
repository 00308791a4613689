import Delivery
import MarmotPublishing
import MarmotPush
import NIOCore
import PushModel
import Secp256k1Keys
import WebSocket
import WireFormats

/// Drives one inbox relay: connects, carries out what its state asks for, and hands events to the queue.
actor InboxRelay {
    /// What it needs of the pool it belongs to.
    struct Surroundings: Sendable {
        let client: WebSocketClient
        let queue: ShareQueue<Int, WrapArrival>
        let limits: NostrLimits
        let world: World
        let document: DocumentFetch?
        let note: @Sendable (NostrRelay, RelayNote) -> Void
        let share: WrapShare
        let selfTest: SelfTest
        /// An event fell to another process.
        let passedOver: @Sendable () -> Void
    }

    nonisolated let relay: NostrRelay
    /// The relay's share of the queue.
    nonisolated let share: Int
    private let settings: NostrSettings
    private let around: Surroundings
    private var lists: [NostrEvent]
    private var hasNewLists = false
    private var state: RelayState
    private var connection: WebSocketConnection?
    private nonisolated let dialling = Bell()
    private nonisolated let stopping = Bell()

    /// - Parameter lists: our relay lists, one for each key.
    init(
        _ relay: NostrRelay, share: Int, settings: NostrSettings, lists: [NostrEvent], around: Surroundings
    ) {
        self.relay = relay
        self.share = share
        self.settings = settings
        self.lists = lists
        self.around = around
        state = RelayState(
            keys: settings.keys.map(\.publicKey.hex), backlog: settings.backlog, limits: around.limits,
            random: around.world.random,
            prefix: { [world = around.world] in Hex.encode(world.randomBytes(8)) })
    }

    var isListening: Bool { state.isListening }
    var isSubscribed: Bool { state.isSubscribed }
    /// The last test of it was lost, and nothing has come since.
    var isDeaf: Bool { state.isDeaf }

    /// What a test of it has shown; `nil`: nothing.
    func tested(isHeard: Bool?) async { if let isHeard { await take(.tested(isHeard: isHeard)) } }

    /// Stays connected until ``stop()``, or until the task is cancelled.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.serve() }
            // One ticker for each relay: a relay that accepts nothing delays only its own sends.
            group.addTask { await self.tick() }
            group.addTask { await self.stopping.wait() }
            await group.next()
            group.cancelAll()
        }
        await connection?.close(.goingAway)
        connection = nil
    }

    nonisolated func stop() { stopping.ring() }

    /// Puts other relay lists in force; they are published with the next tick.
    func adopt(_ lists: [NostrEvent]) {
        self.lists = lists
        hasNewLists = true
    }

    // MARK: Inside

    private func tick() async {
        while true {
            // The sleep ends early only by cancellation, which ends the relay.
            do { try await around.world.sleep(around.world.instant() + around.limits.tick) } catch { return }
            if hasNewLists {
                hasNewLists = false
                await take(.listChanged)
            }
            if connection?.isDoubted == true { await take(.doubted) }
            await take(.tick)
        }
    }

    private func serve() async {
        if let fetch = around.document, settings.proxy == nil {
            state.asksForProof = await fetch(relay.address)?.authRequired ?? false
        }
        await take(.start)
        while !Task.isCancelled {
            await dialling.wait()
            if Task.isCancelled { return }
            await converse()
        }
    }

    private func converse() async {
        var proxy = settings.proxy
        if proxy?.credentials == nil { proxy?.credentials = .isolated(around.world) }
        do throws(WebSocketError) {
            let connection = try await around.client.connect(relay.address, proxy: proxy)
            self.connection = connection
            await take(.connected)
            while let message = try await connection.receive() { await take(message) }
            await ended(nil)
        } catch {
            await ended(error.code)
        }
    }

    private func ended(_ code: WebSocketError.Code?) async {
        // A stopped connection still sends a farewell; the stop does that.
        if Task.isCancelled { return }
        connection = nil
        await take(.ended(code))
    }

    private func take(_ message: WebSocketMessage) async {
        guard case .text(let bytes) = message else { return await take(.babble) }
        let said: NostrMessage.FromRelay
        do throws(MarmotError) {
            said = try bytes.withUnsafeReadableBytes { (raw) throws(MarmotError) in
                try NostrMessage.FromRelay.parse(raw)
            }
        } catch {
            return await take(.babble)
        }
        await take(.said(said))
    }

    private func take(_ event: RelayState.Event) async {
        for action in state.take(event, at: around.world.instant()) { await perform(action) }
    }

    private func perform(_ action: RelayState.Action) async {
        switch action {
        case .dial: dialling.ring()
        case .note(let note): around.note(relay, note)
        case .hangUp:
            // A farewell would wait for a peer that does not listen.
            connection?.abort()
        case .unsubscribe(let name): await say(.close(subscription: name))
        case .subscribe(let name, let takesStored):
            await say(.request(subscription: name, filters: [filter(takesStored)]))
        case .subscribePage(let name, let until):
            var filter = filter(true)
            filter.until = until
            await say(.request(subscription: name, filters: [filter]))
        case .probe(let name):
            await say(.request(subscription: name, filters: [filter(false)]))
        case .authenticate(let challenge):
            let proofs = settings.keys.map { pair in
                AuthEvent.make(
                    relay: relay.url, challenge: challenge, at: now, by: pair,
                    auxiliary: around.world.randomBytes(32))
            }
            _ = state.take(.authenticating(proofs.map(\.id)), at: around.world.instant())
            for proof in proofs { await say(.authenticate(proof)) }
        case .publishList:
            // One of the processes that listen for this key acts for all of them.
            guard around.share.speaks else { return }
            _ = state.take(.publishing(lists.map(\.id)), at: around.world.instant())
            for list in lists { await say(.event(list)) }
        case .deliver(let event, let source):
            guard !around.selfTest.takes(event, from: share) else { return }
            let item = WrapArrival(event: event, source: source, relay: share)
            guard around.share.falls(to: item) else { return around.passedOver() }
            // Waits while this relay's share is full; its socket is then not read.
            _ = await around.queue.put(item, bytes: item.size, of: share)
        }
    }

    private var now: Int64 { around.world.now().seconds }

    /// One stored event is asked for where none is wanted, and dropped: nostr-relay 1.14 reads a limit of 0
    /// as none at all, and would say two days of wraps anew on every connection.
    private func filter(_ takesStored: Bool) -> NostrFilter {
        .wraps(
            for: settings.keys.map(\.publicKey), since: max(0, now - NostrLimits.backlog.components.seconds),
            limit: takesStored ? nil : 1)
    }

    private func say(_ message: NostrMessage.FromClient) async {
        guard let connection else { return }
        let text = message.serialized().reveal { ByteBuffer(bytes: $0) }
        do throws(WebSocketError) {
            try await connection.send(.text(text))
        } catch {
            // The reader of the connection learns of its end; a connection that accepts nothing more is ended
            // here.
            connection.abort()
        }
    }
}
