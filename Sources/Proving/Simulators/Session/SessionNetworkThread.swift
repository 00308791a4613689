import MessageSockets
import Primitives
import PushModel
import SessionPush
import Synchronization
import WireFormats

/// The thread that owns all sockets of a simulated network.
final class SessionNetworkThread: @unchecked Sendable {
    // Safety: everything that is not behind a lock is used by the thread only, or set before it starts.

    typealias Order = @Sendable (SessionNetworkThread) -> Void

    private struct Inbox {
        var orders: [Order] = []
        var isOver = false
        var isStarted = false
    }

    private static let daemon: UInt64 = 1
    private static let authenticator: UInt64 = 2
    /// Events of the daemon socket's connections.
    private static let daemonMonitor: UInt64 = 3
    /// Numbers of storage servers begin here.
    private static let first: UInt64 = 16

    private let configuration: SessionNetworkConfiguration
    private let world: World
    private let context: MessageContext
    private let waking: WakeUp
    private let poll: SocketPoll
    private let inbox = Mutex(Inbox())
    private var note: @Sendable (SessionNote) -> Void = { _ in }
    private var sockets: [UInt64: MessageSocket] = [:]
    private var monitor: SocketMonitor?
    private var endpoints: [UInt64: String] = [:]
    private var unread: Set<UInt64> = []
    /// Storage servers whose port is not free again yet: the library closes it in the background.
    private var closed: Set<UInt64> = []
    private let memo = CurveMemo()
    private var chain = SimulatedChainDaemon()
    private var servers: [SimulatedStorageServer]
    private var isStopping = false

    init?(_ configuration: SessionNetworkConfiguration, world: World) {
        guard let waking = WakeUp(), let poll = SocketPoll(waking: waking) else { return nil }
        self.configuration = configuration
        self.world = world
        self.waking = waking
        self.poll = poll
        context = MessageContext(sockets: 2 * configuration.swarms.count + 16)
        servers = configuration.swarms.map { SimulatedStorageServer(pair: .generate(world), swarm: $0) }
    }

    /// - Returns: the daemon's address; `nil` if a port is taken.
    func start(note: @escaping @Sendable (SessionNote) -> Void) async -> String? {
        let isFirst = inbox.withLock { inbox in
            defer { inbox.isStarted = true }
            return !inbox.isStarted
        }
        guard isFirst else { return nil }
        self.note = note
        return await withCheckedContinuation { continuation in
            let began = OwnedThread.start { [self] in
                let made = bind()
                continuation.resume(returning: made)
                if made != nil { work() }
                end()
            }
            if !began { continuation.resume(returning: nil) }
        }
    }

    /// Runs on the thread, soon; not at all once it has stopped.
    func tell(_ order: @escaping Order) {
        let isOver = inbox.withLock { inbox in
            if !inbox.isOver { inbox.orders.append(order) }
            return inbox.isOver
        }
        if isOver { order(self) } else { waking.ring() }
    }

    func stop() async {
        let isOver = inbox.withLock { $0.isOver || !$0.isStarted }
        if isOver { return }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            tell { thread in
                thread.isStopping = true
                continuation.resume()
            }
        }
    }

    // MARK: The thread

    private func bind() -> String? {
        guard let zap = MessageSocket(.reply, in: context), zap.bind("inproc://zeromq.zap.01") != nil
        else { return nil }
        add(zap, Self.authenticator)
        let port = configuration.daemonPort == 0 ? "*" : String(configuration.daemonPort)
        guard let daemon = listen(Self.daemon, at: "tcp://\(configuration.host):\(port)", nil) else {
            return nil
        }
        if let monitor = sockets[Self.daemon]?.monitor("daemon-monitor") {
            self.monitor = monitor
            poll.add(monitor.descriptor, Self.daemonMonitor)
            unread.insert(Self.daemonMonitor)
        }
        for index in servers.indices {
            let number = Self.first + UInt64(index)
            guard let endpoint = listen(number, at: "tcp://\(configuration.host):*", servers[index].pair)
            else { return nil }
            endpoints[number] = endpoint
        }
        return daemon
    }

    private func listen(_ number: UInt64, at endpoint: String, _ pair: X25519KeyPair?) -> String? {
        guard let socket = MessageSocket(.router, in: context) else { return nil }
        if let pair {
            socket.set(.curveServer, 1)
            pair.privateKey.reveal { socket.set(.curveSecretKey, $0) }
        }
        socket.set(.handover, 1)
        socket.set(.frameBytes, 10 << 20)
        socket.set(.sendBound, 100_000)
        guard let bound = socket.bind(endpoint) else { return nil }
        add(socket, number)
        return bound
    }

    private func add(_ socket: MessageSocket, _ number: UInt64) {
        sockets[number] = socket
        poll.add(socket.descriptor, number)
        unread.insert(number)
    }

    private func remove(_ number: UInt64) {
        guard let socket = sockets.removeValue(forKey: number) else { return }
        poll.remove(socket.descriptor)
        unread.remove(number)
        socket.close()
    }

    private func work() {
        while !isStopping {
            let orders = inbox.withLock { inbox in
                defer { inbox.orders = [] }
                return inbox.orders
            }
            for order in orders { order(self) }
            for number in closed { reopen(number) }
            for number in Array(unread) { read(number) }
            let patience: Int32 = closed.isEmpty ? 1_000 : 2
            unread.formUnion(poll.wait(milliseconds: unread.isEmpty ? patience : 0))
        }
    }

    private func end() {
        if let monitor {
            poll.remove(monitor.descriptor)
            monitor.close()
        }
        for number in Array(sockets.keys) { remove(number) }
        let orders = inbox.withLock { inbox in
            inbox.isOver = true
            defer { inbox.orders = [] }
            return inbox.orders
        }
        for order in orders { order(self) }
    }

    private func read(_ number: UInt64) {
        unread.remove(number)
        if number == Self.daemonMonitor { return readMonitor() }
        guard let socket = sockets[number] else { return }
        if number >= Self.first, !servers[Int(number - Self.first)].knobs.reads { return }
        for _ in 0..<64 {
            guard let message = socket.receive(framesAtMost: 16) else { return }
            let frames = message.frames.map { frame in frame.reveal { Array($0) } }
            switch number {
            case Self.authenticator: authenticate(frames, socket)
            case Self.daemon: chainHears(frames)
            default: hears(Int(number - Self.first), frames, userID: message.userID)
            }
            guard sockets[number] === socket else { return }
        }
        unread.insert(number)
    }

    private func readMonitor() {
        while let event = monitor?.next() {
            if event == .ended { note(.daemonLeft) }
        }
    }

    private func send(_ number: UInt64, _ client: [UInt8], _ frames: [[UInt8]]) {
        _ = sockets[number]?.send(([client] + frames).map { .bytes($0) })
        // Sending also handles the library's pending events, and so clears their signal.
        unread.insert(number)
    }

    private func send(_ number: UInt64, _ client: [UInt8], words: [String]) {
        send(number, client, words.map { Array($0.utf8) })
    }

    /// ZAP (RFC 27 of ZeroMQ): accepts everybody, under the name of their key.
    private func authenticate(_ frames: [[UInt8]], _ socket: MessageSocket) {
        guard frames.count >= 6 else { return }
        let name = frames.count > 6 ? Hex.encode(frames[6]) : ""
        let answer = [frames[0], frames[1], Array("200".utf8), Array("OK".utf8), Array(name.utf8), []]
        _ = socket.send(answer.map { .bytes($0) })
        unread.insert(Self.authenticator)
    }

    // MARK: Storage servers

    private func hears(_ index: Int, _ frames: [[UInt8]], userID: String?) {
        guard frames.count >= 2 else { return }
        let (number, client) = (Self.first + UInt64(index), frames[0])
        if userID != Hex.encode(client.dropFirst()) { note(.strangeName(node: index)) }
        switch String(decoding: frames[1], as: UTF8.self) {
        case "HI":
            servers[index].clients.insert(client)
            note(.greeted(node: index))
            if servers[index].knobs.greets { send(number, client, words: ["HELLO"]) }
        case "monitor.messages":
            guard frames.count >= 3 else {
                return send(number, client, words: ["NO_REPLY_TAG", "monitor.messages"])
            }
            monitor(index, client, tag: frames[2], body: frames.count > 3 ? frames[3] : [])
        case "BYE": servers[index].clients.remove(client)
        case let word:
            note(.unknownCommand(node: index))
            send(number, client, words: ["UNKNOWNCOMMAND", word])
        }
    }

    private func monitor(_ index: Int, _ client: [UInt8], tag: [UInt8], body: [UInt8]) {
        let number = Self.first + UInt64(index)
        switch servers[index].knobs.answers {
        case .unknownCommand: return send(number, client, words: ["UNKNOWNCOMMAND", "monitor.messages"])
        case .forbidden: return send(number, client, [Array("FORBIDDEN".utf8), Array("REPLY".utf8), tag])
        default: break
        }
        let judge = MonitorJudge(now: world.now(), memo)
        guard let (verdicts, isList) = body.withUnsafeBytes({ judge.judge($0) }) else {
            note(.unreadable(node: index))
            let reply = MonitorJudge.reply([.failure(.arguments)], isList: false)
            return send(number, client, [Array("REPLY".utf8), tag, reply])
        }
        let until = world.instant() + configuration.watchLife
        var taken = 0
        for case .success(let watch) in verdicts {
            servers[index].watch(watch, for: client, until: until)
            taken += 1
        }
        if let answer = servers[index].answer(verdicts, isList: isList) {
            send(number, client, [Array("REPLY".utf8), tag, answer])
        }
        note(.watched(node: index, taken: taken, refused: verdicts.count - taken))
    }

    // MARK: The chain daemon

    private func chainHears(_ frames: [[UInt8]]) {
        guard frames.count >= 2 else { return }
        let client = frames[0]
        func reply(_ parts: [[UInt8]]) {
            send(Self.daemon, client, [Array("REPLY".utf8), frames[2]] + parts)
        }
        switch (String(decoding: frames[1], as: UTF8.self), frames.count) {
        case ("HI", _):
            note(.daemonGreeted)
            if chain.knobs.greets { send(Self.daemon, client, words: ["HELLO"]) }
        case ("ping.ping", 3...): reply([Array("pong".utf8)])
        case ("sub.block", 3...):
            let isNew = chain.listeners.insert(client).inserted
            reply([Array((isNew ? "OK" : "ALREADY").utf8)])
            note(.noticesAsked)
        case ("rpc.get_service_nodes", 3...):
            if let answer = chain.answer(listed) { reply(answer) }
            note(.nodesTold)
        case (let word, _): send(Self.daemon, client, words: ["UNKNOWNCOMMAND", word])
        }
    }

    private var listed: [StorageNode] {
        servers.indices.compactMap { index in
            guard let swarm = servers[index].swarm, let key = NodeKey(servers[index].pair.publicKey),
                let port = endpoints[Self.first + UInt64(index)]?.split(separator: ":").last,
                let number = UInt16(port), let address = IPAddress(configuration.host)
            else { return nil }
            return StorageNode(key: key, address: address, port: number, swarm: swarm)
        }
    }

    // MARK: Orders

    func turn(_ node: Int, _ change: (inout StorageNodeKnobs) -> Void) {
        change(&servers[node].knobs)
        unread.insert(Self.first + UInt64(node))
    }

    func turnDaemon(_ change: (inout ChainDaemonKnobs) -> Void) { change(&chain.knobs) }

    /// - Returns: to how many connections it was told.
    @discardableResult
    func store(_ notice: StorageNotice) -> Int {
        let map = SwarmMap(servers.compactMap(\.swarm))
        let swarm = map.swarm(of: notice.account.swarmPoint)
        var told = 0
        for index in servers.indices where servers[index].swarm == swarm {
            for (client, body) in servers[index].told(notice, at: world.instant()) {
                send(Self.first + UInt64(index), client, [Array("notify.message".utf8), body])
                told += 1
            }
        }
        return told
    }

    func restart(_ node: Int) {
        forget(node)
        cut(node)
    }

    func forget(_ node: Int) { servers[node].watches = [:] }

    func cut(_ node: Int) {
        let number = Self.first + UInt64(node)
        remove(number)
        servers[node].clients = []
        closed.insert(number)
    }

    private func reopen(_ number: UInt64) {
        guard let endpoint = endpoints[number] else { return }
        let pair = servers[Int(number - Self.first)].pair
        if listen(number, at: endpoint, pair) != nil { closed.remove(number) }
    }

    func say(_ node: Int, _ frames: [[UInt8]], times: Int) {
        for client in servers[node].clients {
            for _ in 0..<times { send(Self.first + UInt64(node), client, frames) }
        }
    }

    func block(_ swarms: [UInt64?]) {
        for (index, swarm) in swarms.enumerated() where servers.indices.contains(index) {
            servers[index].swarm = swarm
        }
        chain.height += 1
        for client in chain.listeners {
            send(
                Self.daemon, client, words: ["notify.block", String(chain.height), chain.blockHash])
        }
    }

    func watches(at node: Int) -> Int {
        servers.indices.contains(node)
            ? servers[node].watches.values.count { $0.until > world.instant() } : 0
    }

    func watchedAccounts(at node: Int) -> Set<[UInt8]> {
        guard servers.indices.contains(node) else { return [] }
        return Set(servers[node].watches.filter { $0.value.until > world.instant() }.keys.map(\.account))
    }
}
