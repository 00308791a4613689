package import MessageSockets
package import PushModel
package import SessionPush

/// A peer of the link.
package enum Peer: Sendable, Hashable {
    /// The chain daemon.
    case daemon
    case node(NodeKey)
}

/// The whole link: events in, actions out. A thread carries the actions out; the machine itself touches
/// neither socket nor store nor clock.
package struct SwarmLinkState: ~Copyable {
    package enum Event: Sendable {
        case start
        case tick
        /// Keys are exchanged; or the connection, or the attempt to make one, has ended.
        case ready(Peer)
        case ended(Peer, isRefusal: Bool)
        case said(Peer, OxenMessage)
        /// Entries of rows that were read for the first time.
        case rows([WatchEntry])
        /// The result of a reading; `nil`: the store did not answer.
        case read(Int, WatchBatch?)
    }

    package enum Action: Sendable {
        case open(Peer, endpoint: String, serverKey: [UInt8]?)
        case close(Peer)
        case send(Peer, [MessageFrame])
        case read(WatchReading)
        /// A node tells of a message.
        case notice(NodeKey, SwarmScope, body: Secret)
        /// The swarm has refused these watches for good: none of its nodes accepts their signer.
        case end([UInt64])
        /// The number of watches that a node has accepted; and why it has refused one.
        case shown(Int)
        case refused(MonitorRefusal)
        case note(SwarmNote)
    }

    /// The nodes that fall to this process, given the swarms and their members; `nil`: not known at the
    /// moment, so nothing changes.
    package typealias Ours = @Sendable (_ swarms: [UInt64: [NodeKey]]) -> Set<NodeKey>?

    /// One storage server.
    struct Node: Sendable {
        var node: StorageNode
        var arc: SwarmArc?
        /// Parts of the ring that it had before, the oldest first, and until when each is still good.
        var former: [(arc: SwarmArc, until: ContinuousClock.Instant)] = []
        var dial = DialState()
        var watching: Watching?
        var strays = 0
        /// Until when we listen to it although it falls to another process, which still has to connect and
        /// show its watches.
        var heardUntil: ContinuousClock.Instant?

        func scope(at now: ContinuousClock.Instant) -> SwarmScope {
            // There are rarely any.
            if former.isEmpty { return SwarmScope(arc) }
            return SwarmScope(arc, former: former.filter { $0.until > now }.map(\.arc))
        }

        /// Another part of the ring falls to it.
        mutating func move(to arc: SwarmArc?, at now: ContinuousClock.Instant, _ limits: SwarmLimits) {
            if let old = self.arc, old != arc {
                former.removeAll { $0.until <= now }
                former.append((old, now + limits.formerScope))
                if former.count > limits.formerScopes { former.removeFirst() }
            }
            self.arc = arc
        }
    }

    /// A reading that goes on or whose batch some lanes wait for the reply to.
    struct Batch: Sendable {
        var place: Place
        var lanes: Set<LanePlace>
        var batch: WatchBatch?
        var readAt: ContinuousClock.Instant?
    }

    /// Where in the rotation a reading begins.
    struct Place: Sendable, Hashable {
        var swarm: UInt64
        var after: UInt64
    }

    struct LanePlace: Sendable, Hashable {
        var node: NodeKey
        var lane: Watching.Lane
    }

    let limits: SwarmLimits
    let random: @Sendable () -> UInt64
    private let oursOf: Ours
    var daemon: DaemonState
    var nodes: [NodeKey: Node] = [:]
    var members: [UInt64: [NodeKey]] = [:]
    var map = SwarmMap([])
    var table = WatchTable()
    var batches: [Int: Batch] = [:]
    var places: [Place: Int] = [:]
    var nextReading = 0
    var votes: RefusalVotes
    /// Votes of nodes that reject the signature: its signer may no longer sign for the account.
    var verdicts: RefusalVotes
    var refused: RefusedWatches
    private var votesFrom: ContinuousClock.Instant?
    private var sharedAt: ContinuousClock.Instant?
    var blockHash = ""
    var height: UInt64 = 0

    /// - Parameters:
    ///   - random: 64 random bits.
    ///   - ours: asked once a second, and with each list of nodes.
    package init(
        daemon: DaemonAddress, limits: SwarmLimits, random: @escaping @Sendable () -> UInt64,
        ours: @escaping Ours = { Set($0.values.joined()) }
    ) {
        self.limits = limits
        self.random = random
        oursOf = ours
        self.daemon = DaemonState(daemon)
        votes = RefusalVotes(limit: limits.votes)
        verdicts = RefusalVotes(limit: limits.votes)
        refused = RefusedWatches(limits)
    }

    package mutating func take(_ event: Event, at now: ContinuousClock.Instant) -> [Action] {
        switch event {
        case .start: return dialDaemon(now)
        case .tick: return tick(now)
        case .ready(let peer): return ready(peer, now)
        case .ended(let peer, let isRefusal):
            return ended(peer, isRefusal ? .refused : .lost, now)
        case .said(.daemon, let message): return daemonSaid(message, now)
        case .said(.node(let key), let message): return nodeSaid(key, message, now)
        case .rows(let entries): return grew(entries, now)
        case .read(let id, let batch): return read(id, batch, now)
        }
    }

    /// What is known at the moment.
    package var statistics: SwarmStatistics {
        var statistics = SwarmStatistics()
        statistics.watches = table.count
        statistics.nodes = nodes.count
        statistics.swarms = map.ids.count
        statistics.blockHash = blockHash
        statistics.height = height
        statistics.hasNodes = !nodes.isEmpty
        statistics.isDaemonConnected = daemon.dial.isConnected
        statistics.refused = refused.told
        for node in nodes.values {
            if node.dial.isConnected { statistics.connected += 1 }
            if node.dial.isTrying { statistics.dialling += 1 }
            if node.dial.phase != .off, node.heardUntil == nil { statistics.ours += 1 }
        }
        return statistics
    }

    // MARK: Time

    private mutating func tick(_ now: ContinuousClock.Instant) -> [Action] {
        var actions = daemonTick(now)
        if sharedAt.map({ now - $0 >= limits.shareEvery }) ?? true {
            sharedAt = now
            actions += share(now)
        }
        // Counted from the first tick on, which drops nothing: nodes may have refused something before it.
        if now - (votesFrom ?? now) >= limits.renewal.upperBound {
            votesFrom = now
            votes.forget()
            verdicts.forget()
            refused.forget()
        }
        votesFrom = votesFrom ?? now
        refused.look(table.count, at: now)
        for (key, node) in nodes {
            switch node.dial.due(at: now) {
            case .rested: nodes[key]?.dial.wait(at: now)
            case .late: actions += ended(.node(key), .late, now)
            case nil: actions += watchTick(key, now)
            }
        }
        forgetOldBatches(now)
        return actions + fillPlaces(now)
    }

    /// Turns to the nodes that fall to us, and away from the others.
    mutating func share(_ now: ContinuousClock.Instant) -> [Action] {
        guard let ours = oursOf(members) else { return [] }
        var actions: [Action] = []
        for (key, node) in nodes {
            switch (ours.contains(key), node.dial.phase) {
            case (true, .off): nodes[key]?.dial.wait(at: now)
            case (true, _): nodes[key]?.heardUntil = nil
            case (false, .off): break
            case (false, .connected):
                // The process that has it now may not know yet, and must connect and show its watches. The
                // store's marks make one push of a message that both hear.
                let end = node.heardUntil ?? now + limits.handover
                nodes[key]?.heardUntil = end
                if end <= now { actions += leave(key) }
            case (false, _): actions += leave(key)
            }
        }
        return actions
    }

    private mutating func leave(_ key: NodeKey) -> [Action] {
        let isOpen = nodes[key]?.dial.isOpen ?? false
        stopWatching(key)
        nodes[key]?.dial.turnOff()
        nodes[key]?.heardUntil = nil
        return isOpen ? [.close(.node(key))] : []
    }

    /// Dials those that have waited longest, as many as there are places for.
    mutating func fillPlaces(_ now: ContinuousClock.Instant) -> [Action] {
        var free = limits.dialsAtOnce
        var waiting: [(NodeKey, ContinuousClock.Instant)] = []
        for (key, node) in nodes {
            if node.dial.isTrying { free -= 1 }
            if case .waiting(let since) = node.dial.phase { waiting.append((key, since)) }
        }
        guard free > 0, !waiting.isEmpty else { return [] }
        waiting.sort { $0.1 < $1.1 }
        var actions: [Action] = []
        for (key, _) in waiting.prefix(free) {
            guard let node = nodes[key]?.node else { continue }
            nodes[key]?.dial.dial(until: now + limits.dialDeadline)
            actions.append(
                .open(.node(key), endpoint: Self.endpoint(of: node), serverKey: key.bytes))
            actions.append(.note(.dialled))
        }
        return actions
    }

    private static func endpoint(of node: StorageNode) -> String {
        node.address.v4 == nil
            ? "tcp://[\(node.address.text)]:\(node.port)" : "tcp://\(node.address.text):\(node.port)"
    }

    // MARK: Coming and going

    private mutating func ready(_ peer: Peer, _ now: ContinuousClock.Instant) -> [Action] {
        let end = now + limits.dialDeadline
        let isAwaited =
            switch peer {
            case .daemon: daemon.dial.ready(until: end)
            case .node(let key): nodes[key]?.dial.ready(until: end) ?? false
            }
        return isAwaited ? [.send(peer, [.text("HI")])] : []
    }

    mutating func ended(_ peer: Peer, _ note: SwarmNote, _ now: ContinuousClock.Instant) -> [Action] {
        switch peer {
        case .daemon: return daemonEnded(now)
        case .node(let key):
            guard nodes[key]?.dial.isOpen == true else { return [] }
            stopWatching(key)
            nodes[key]?.dial.ended(at: now, ladder: limits.ladder, limits: limits, random: random)
            return [.close(peer), .note(note)]
        }
    }

    // MARK: What a node says

    private mutating func nodeSaid(
        _ key: NodeKey, _ message: OxenMessage, _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard let node = nodes[key], node.dial.isOpen else { return [] }
        switch message {
        case .hello:
            guard nodes[key]?.dial.greeted(at: now) == true else { return stray(key, now) }
            nodes[key]?.strays = 0
            let watching = Watching(last: table.last, renewAt: now + renewalSpan())
            nodes[key]?.watching = watching
            return [.note(.connected)] + advance(key, now)
        case .bye: return ended(.node(key), .farewell, now)
        // A peer that comes back may send us messages before it is greeted.
        case .call(name: "notify.message", let parts) where parts.count == 1:
            return [.notice(key, node.scope(at: now), body: parts[0])]
        case .call(name: "notify.monitor_ended", let parts) where parts.count == 1:
            return watchEnded(key, parts[0], now)
        case .reply(let tag, let parts): return replied(key, tag, parts, now)
        case .refusal(_, let tag?): return replyRefused(key, tag, now)
        // A refusal without a tag names no request; the request's time runs out.
        case .refusal(_, nil): return [.note(.requestRefused)]
        case .hi, .call, .strange: return stray(key, now)
        }
    }

    mutating func stray(_ key: NodeKey, _ now: ContinuousClock.Instant) -> [Action] {
        nodes[key]?.strays += 1
        let isTooMuch = (nodes[key]?.strays ?? 0) > limits.strays
        return [.note(.strange)] + (isTooMuch ? ended(.node(key), .struckOut, now) : [])
    }

    /// When the watches that are shown now must be shown again.
    func renewalSpan() -> Duration {
        let (least, most) = (limits.renewal.lowerBound, limits.renewal.upperBound)
        return least + (most - least).part(random())
    }

    func tag() -> [UInt8] {
        withUnsafeBytes(of: (random(), random())) { Array($0.prefix(SwarmFormLimits.tagBytes)) }
    }
}
