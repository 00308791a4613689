import Delivery
import MessageSockets
import Primitives
import PushModel
import SessionPush
import Synchronization

/// The thread that owns all sockets of the link, and its state. Other threads only send it orders.
final class LinkThread: @unchecked Sendable {
    // Safety: fields that are not behind a lock are touched by the thread alone, or set before it starts.

    /// What the thread hands on.
    struct Outlets: Sendable {
        /// One share for each node.
        let queue: ShareQueue<NodeKey, SwarmArrival>
        let readings: ShareQueue<Int, WatchReading>
        let ended: @Sendable ([UInt64]) -> Void
        let note: @Sendable (SwarmNote) -> Void
        let metrics: SwarmMetrics
        let received: @Sendable () -> Void
    }

    private enum Order: Sendable {
        case event(SwarmLinkState.Event, done: Bell?)
        case room(NodeKey)
        /// The chain daemon's addresses.
        case found([IPAddress], dial: UInt64)
        case stop
    }

    private struct Place {
        let peer: Peer
        let socket: MessageSocket
        let monitor: SocketMonitor
        /// Keys have been exchanged.
        var isReady = false
        /// Whether its share of the queue is full, so that it is not read.
        var isPaused = false
    }

    private let orders = Mutex<[Order]>([])
    private let snapshot = Mutex(SwarmStatistics())
    private let context: MessageContext
    private let waking: WakeUp
    private let poll: SocketPoll
    private let pair: X25519KeyPair
    private let limits: SwarmLimits
    private let world: World
    private var outlets: Outlets?
    private var state: SwarmLinkState
    private var places: [UInt64: Place] = [:]
    private var numbers: [Peer: UInt64] = [:]
    private var nextNumber: UInt64 = 0
    /// Sockets that may have more to say.
    private var unread: Set<UInt64> = []
    private var isStopping = false
    private var toldNoRoomAt: ContinuousClock.Instant?
    private var daemonWays: DaemonWays
    private var daemonKey: [UInt8]?
    private var daemonDials: UInt64 = 0

    /// - Returns: `nil` when the process has no descriptor left.
    init?(
        daemon: DaemonAddress, pair: X25519KeyPair, limits: SwarmLimits, world: World,
        ours: @escaping SwarmLinkState.Ours
    ) {
        guard let waking = WakeUp(), let poll = SocketPoll(waking: waking) else { return nil }
        context = MessageContext(sockets: limits.sockets)
        self.waking = waking
        self.poll = poll
        self.pair = pair
        self.limits = limits
        self.world = world
        daemonWays = DaemonWays(limits)
        state = SwarmLinkState(daemon: daemon, limits: limits, random: world.random, ours: ours)
    }

    // MARK: From other threads

    /// Runs until ``stop()``.
    ///
    /// - Returns: false when there could be no thread.
    func run(_ outlets: Outlets) async -> Bool {
        self.outlets = outlets
        return await withCheckedContinuation { continuation in
            let began = OwnedThread.start { [self] in
                work()
                continuation.resume(returning: true)
            }
            if !began { continuation.resume(returning: false) }
        }
    }

    /// - Parameter done: rung when the event has been dealt with.
    func tell(_ event: SwarmLinkState.Event, done: Bell? = nil) { add(.event(event, done: done)) }
    func hasRoom(_ node: NodeKey) { add(.room(node)) }
    func stop() { add(.stop) }
    var statistics: SwarmStatistics { snapshot.withLock(\.self) }

    private func add(_ order: Order) {
        orders.withLock { $0.append(order) }
        waking.ring()
    }

    // MARK: The thread

    private func work() {
        take(.start)
        var ticked = world.instant()
        while !isStopping {
            let orders = orders.withLock { orders in
                defer { orders = [] }
                return orders
            }
            for order in orders { follow(order) }
            let now = world.instant()
            if now - ticked >= limits.tick {
                ticked = now
                take(.tick)
                publish()
            }
            for number in Array(unread) { read(number) }
            let patience = unread.isEmpty ? limits.tick.wholeMilliseconds : 0
            unread.formUnion(poll.wait(milliseconds: Int32(clamping: patience)))
        }
        daemonWays.end()
        for number in Array(places.keys) { close(number) }
        publish()
        for case .event(_, let done?) in orders.withLock(\.self) { done.ring() }
    }

    private func follow(_ order: Order) {
        switch order {
        case .event(let event, let done):
            take(event)
            done?.ring()
        case .room(let node):
            guard let number = numbers[.node(node)], let place = places[number], place.isPaused else {
                return
            }
            places[number]?.isPaused = false
            poll.add(place.socket.descriptor, number)
            unread.insert(number)
        case .found(let addresses, let dial) where dial == daemonDials:
            daemonWays.take(addresses)
            tryNextDaemon()
        case .found: break
        case .stop: isStopping = true
        }
    }

    private func publish() {
        var statistics = state.statistics
        statistics.queued = outlets?.queue.count ?? 0
        outlets?.queue.setShare(limits.share(among: statistics.connected))
        snapshot.withLock { $0 = statistics }
    }

    private func take(_ event: SwarmLinkState.Event) {
        let blockHash = state.blockHash
        let actions = state.take(event, at: world.instant())
        if state.blockHash != blockHash { publish() }
        for action in actions { perform(action) }
    }

    private func perform(_ action: SwarmLinkState.Action) {
        switch action {
        case .open(let peer, let endpoint, let key): open(peer, endpoint, key)
        case .close(let peer):
            if peer == .daemon { daemonWays.end() }
            if let number = numbers[peer] { close(number) }
        case .send(let peer, let frames):
            guard let number = numbers[peer], let place = places[number] else { return }
            if !place.socket.send(frames) { take(.ended(peer, isRefusal: false)) }
            // Sending also reads the library's events, which clears their signal.
            unread.insert(number)
        case .read(let reading): outlets?.readings.add(reading, bytes: 0, of: 0)
        case .notice(let node, let scope, let body):
            outlets?.received()
            let arrival = SwarmArrival(node: node, scope: scope, body: body)
            outlets?.queue.add(arrival, bytes: arrival.size, of: node)
        case .end(let revisions): outlets?.ended(revisions)
        case .shown(let count): outlets?.metrics.shown(count)
        case .refused(let refusal): outlets?.metrics.refused(refusal)
        case .note(let note): outlets?.note(note)
        }
    }

    // MARK: Sockets

    private func open(_ peer: Peer, _ endpoint: String, _ serverKey: [UInt8]?) {
        guard peer == .daemon else { return connect(peer, endpoint, serverKey, within: limits.dialDeadline) }
        daemonDials += 1
        daemonKey = serverKey
        let isNamed = daemonWays.begin(endpoint) { [dial = daemonDials] addresses in
            self.add(.found(addresses, dial: dial))
        }
        if !isNamed { connect(peer, endpoint, serverKey, within: limits.dialDeadline) }
    }

    /// Dials the next of its addresses; after the last one the attempt has failed.
    private func tryNextDaemon() {
        guard let endpoint = daemonWays.next() else { return take(.ended(.daemon, isRefusal: false)) }
        connect(.daemon, endpoint, daemonKey, within: daemonWays.share)
    }

    /// Both descriptors of a peer's socket have one number; the monitor's has the lowest bit set.
    private func connect(
        _ peer: Peer, _ endpoint: String, _ serverKey: [UInt8]?, within span: Duration
    ) {
        nextNumber += 2
        let number = nextNumber
        guard let socket = MessageSocket(.dealer, in: context),
            let monitor = socket.monitor("monitor-\(number)")
        else { return hasNoRoom(for: peer) }
        prepare(socket, peer, serverKey, within: span)
        if endpoint.hasPrefix("tcp://[") { socket.set(.takesV6, 1) }
        places[number] = Place(peer: peer, socket: socket, monitor: monitor)
        numbers[peer] = number
        poll.add(socket.descriptor, number)
        poll.add(monitor.descriptor, number | 1)
        guard socket.connect(endpoint) else { return end(number, isRefusal: false) }
        unread.insert(number | 1)
    }

    /// Connected peers stay; this peer waits longer each time, like one that does not answer.
    private func hasNoRoom(for peer: Peer) {
        let now = world.instant()
        if toldNoRoomAt.map({ now - $0 >= limits.noRoomEvery }) ?? true {
            toldNoRoomAt = now
            outlets?.note(.noRoom)
        }
        take(.ended(peer, isRefusal: false))
    }

    private func prepare(
        _ socket: MessageSocket, _ peer: Peer, _ serverKey: [UInt8]?, within span: Duration
    ) {
        let isDaemon = peer == .daemon
        socket.set(.routingID, OxenMessage.routingID(of: pair.publicKey))
        if let serverKey {
            socket.set(.curveServerKey, serverKey)
            socket.set(.curvePublicKey, pair.publicKey)
            pair.privateKey.reveal { socket.set(.curveSecretKey, $0) }
        }
        socket.set(.frameBytes, isDaemon ? SwarmLimits.messageBytes : SwarmLimits.nodeFrameBytes)
        socket.set(.receiveBound, SwarmLimits.receiveBound)
        socket.set(.sendBound, SwarmLimits.sendBound)
        socket.set(.handshakeMilliseconds, Int(span.wholeMilliseconds))
        socket.set(.connectMilliseconds, Int(span.wholeMilliseconds))
        socket.set(.heartbeatMilliseconds, Int(limits.heartbeat.wholeMilliseconds))
        socket.set(.heartbeatTimeoutMilliseconds, Int(limits.heartbeatTimeout.wholeMilliseconds))
        // A lost connection ends its socket, because we decide when to dial again.
        socket.set(.reconnectMilliseconds, -1)
        socket.set(.onlyConnected, 1)
    }

    /// A connection, or the attempt to make one, has ended. The chain daemon's next address is tried first.
    private func end(_ number: UInt64, isRefusal: Bool) {
        guard let place = places[number] else { return }
        if place.peer == .daemon, !place.isReady, let endpoint = daemonWays.next() {
            close(number)
            return connect(.daemon, endpoint, daemonKey, within: daemonWays.share)
        }
        take(.ended(place.peer, isRefusal: isRefusal))
    }

    private func close(_ number: UInt64) {
        guard let place = places.removeValue(forKey: number) else { return }
        if numbers[place.peer] == number { numbers[place.peer] = nil }
        unread.subtract([number, number | 1])
        if !place.isPaused { poll.remove(place.socket.descriptor) }
        poll.remove(place.monitor.descriptor)
        place.monitor.close()
        place.socket.close()
    }

    /// Reads what there is of one descriptor, a turn's worth at most.
    private func read(_ number: UInt64) {
        unread.remove(number)
        guard let place = places[number & ~1] else { return }
        // A socket's last messages come before its end.
        if number & 1 == 1 { return readMonitor(number, place) }
        guard !place.isPaused else { return }
        for _ in 0..<SwarmLimits.messagesPerTurn {
            if case .node(let key) = place.peer, outlets?.queue.takes(from: key) == false {
                places[number]?.isPaused = true
                poll.remove(place.socket.descriptor)
                // Room may have come in between.
                if outlets?.queue.takes(from: key) == true { follow(.room(key)) }
                return
            }
            guard let message = place.socket.receive(framesAtMost: SwarmFormLimits.frames) else { return }
            take(.said(place.peer, message.isCut ? .strange : OxenMessage(message.frames)))
            if place.peer == .daemon, state.daemon.dial.isConnected { daemonWays.stood() }
            guard places[number] != nil else { return }
        }
        unread.insert(number)
    }

    private func readMonitor(_ number: UInt64, _ place: Place) {
        while let event = place.monitor.next() {
            switch event {
            case .ready:
                places[number & ~1]?.isReady = true
                take(.ready(place.peer))
            case .ended, .refused:
                if !place.isPaused { readAll(number & ~1, place) }
                guard places[number & ~1] != nil else { return }
                end(number & ~1, isRefusal: event == .refused)
            }
            guard places[number & ~1] != nil else { return }
        }
    }

    /// Messages that had come before the connection ended: few, because the queue is bounded.
    private func readAll(_ number: UInt64, _ place: Place) {
        for _ in 0...SwarmLimits.receiveBound {
            guard places[number] != nil,
                let message = place.socket.receive(framesAtMost: SwarmFormLimits.frames)
            else { return }
            take(.said(place.peer, message.isCut ? .strange : OxenMessage(message.frames)))
        }
    }
}
