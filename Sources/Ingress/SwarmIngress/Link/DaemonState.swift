import MessageSockets
import PushModel
package import SessionPush
import WireFormats

/// Where the chain daemon is.
package struct DaemonAddress: Sendable, Hashable {
    /// As ZeroMQ writes it: `tcp://host:port` or `ipc:///path`.
    package let endpoint: String
    /// The daemon's X25519 key; `nil`: a listener without encryption, for which the way must be our own.
    package let key: NodeKey?

    /// `nil` when it is neither form.
    package init?(_ endpoint: String, key: NodeKey? = nil) {
        guard endpoint.utf8.count <= 256, !endpoint.utf8.contains(0) else { return nil }
        let parts = endpoint.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].isEmpty, !parts[2].isEmpty else { return nil }
        switch parts[0] {
        case "ipc:": break
        case "tcp:":
            guard let colon = parts[2].lastIndex(of: ":"), colon != parts[2].startIndex,
                let port = UInt16(parts[2][parts[2].index(after: colon)...]), port > 0
            else { return nil }
        default: return nil
        }
        self.endpoint = endpoint
        self.key = key
    }
}

/// What is known of the chain daemon, and asked of it.
struct DaemonState: Sendable {
    enum Question: Sendable, Hashable { case ping, nodes, notices }

    let address: DaemonAddress
    var dial = DialState()
    /// Requests that are under way, by their tags.
    var asked: [[UInt8]: (question: Question, until: ContinuousClock.Instant)] = [:]
    /// A block has come, or none was reported for long.
    var wantsNodes = false
    var nodesAskedAt: ContinuousClock.Instant?
    var noticesAskedAt: ContinuousClock.Instant?
    /// When it is asked for nodes again, because the last answer was useless.
    var nodesDueAt: ContinuousClock.Instant?
    /// Since when a list is doubted.
    var doubtedAt: ContinuousClock.Instant?

    init(_ address: DaemonAddress) { self.address = address }

    mutating func forgetConnection() {
        asked = [:]
        (nodesAskedAt, noticesAskedAt) = (nil, nil)
        wantsNodes = true
    }

    /// The question that a tag belongs to, which is then answered.
    mutating func answered(_ tag: Secret) -> Question? {
        let key = tag.reveal { Array($0) }
        return asked.removeValue(forKey: key)?.question
    }

    func isAsking(_ question: Question) -> Bool { asked.values.contains { $0.question == question } }
}

extension SwarmLinkState {
    mutating func dialDaemon(_ now: ContinuousClock.Instant) -> [Action] {
        daemon.dial.dial(until: now + limits.dialDeadline)
        daemon.forgetConnection()
        return [
            .open(.daemon, endpoint: daemon.address.endpoint, serverKey: daemon.address.key?.bytes)
        ]
    }

    mutating func daemonEnded(_ now: ContinuousClock.Instant) -> [Action] {
        guard daemon.dial.isOpen else { return [] }
        daemon.dial.ended(at: now, ladder: limits.daemonLadder, limits: limits, random: random)
        daemon.forgetConnection()
        return [.close(.daemon), .note(.daemonLost)]
    }

    mutating func daemonTick(_ now: ContinuousClock.Instant) -> [Action] {
        switch daemon.dial.due(at: now) {
        case .rested: return dialDaemon(now)
        case .late: return daemonEnded(now)
        case nil: break
        }
        guard daemon.dial.isConnected else { return [] }
        if daemon.asked.values.contains(where: { $0.until <= now }) {
            return [.note(.daemonSilent)] + daemonEnded(now)
        }
        return daemonQuestions(now)
    }

    /// The requests that are due, each once at a time.
    private mutating func daemonQuestions(_ now: ContinuousClock.Instant) -> [Action] {
        // Until the ping is answered nothing else is asked.
        guard daemon.dial.isConnected, !daemon.isAsking(.ping) else { return [] }
        var actions: [Action] = []
        let noticesDue = daemon.noticesAskedAt.map { now - $0 >= limits.noticeRenewal } ?? true
        if noticesDue, !daemon.isAsking(.notices) {
            daemon.noticesAskedAt = now
            actions.append(ask(.notices, "sub.block", [], now))
        }
        let isOld = daemon.nodesAskedAt.map { now - $0 >= limits.nodesEvery } ?? true
        if isOld || daemon.nodesDueAt.map({ $0 <= now }) ?? false { daemon.wantsNodes = true }
        let hasRested = daemon.nodesAskedAt.map { now - $0 >= limits.nodesPause } ?? true
        if daemon.wantsNodes, hasRested, !daemon.isAsking(.nodes) {
            (daemon.wantsNodes, daemon.nodesDueAt) = (false, nil)
            daemon.nodesAskedAt = now
            let body = MessageFrame.bytes(Array(ServiceNodes.question.utf8))
            actions.append(ask(.nodes, "rpc.get_service_nodes", [body], now))
        }
        return actions
    }

    private mutating func ask(
        _ question: DaemonState.Question, _ command: StaticString, _ parts: [MessageFrame],
        _ now: ContinuousClock.Instant
    ) -> Action {
        let tag = tag()
        daemon.asked[tag] = (question, now + limits.replyDeadline)
        return .send(.daemon, [.text(command), .bytes(tag)] + parts)
    }

    mutating func daemonSaid(_ message: OxenMessage, _ now: ContinuousClock.Instant) -> [Action] {
        guard daemon.dial.isOpen else { return [] }
        switch message {
        case .hello:
            guard daemon.dial.greeted(at: now) else { return [.note(.strange)] }
            return [.note(.daemonConnected), ask(.ping, "ping.ping", [], now)]
        case .bye: return daemonEnded(now)
        case .call(name: "notify.block", _):
            daemon.wantsNodes = true
            return daemonQuestions(now)
        case .reply(let tag, let parts):
            switch daemon.answered(tag) {
            case .ping, .notices: return daemonQuestions(now)
            case .nodes: return nodesTold(parts, now) + daemonQuestions(now)
            case nil: return [.note(.strange)]
            }
        case .refusal(_, let tag?):
            if daemon.answered(tag) == .nodes { daemon.nodesDueAt = now + limits.doubtRest }
            return [.note(.requestRefused)]
        case .refusal(_, nil), .hi, .call, .strange: return [.note(.strange)]
        }
    }

    // MARK: The network

    private mutating func nodesTold(_ parts: [Secret], _ now: ContinuousClock.Instant) -> [Action] {
        let told: ServiceNodes
        do throws(FormatError) {
            guard parts.count == 2 else { throw FormatError(.wrongType) }
            told = try parts[0].reveal { (status) throws(FormatError) in
                try parts[1].reveal { (text) throws(FormatError) in
                    try ServiceNodes(frames: [status, text])
                }
            }
        } catch {
            daemon.nodesDueAt = now + limits.doubtRest
            return [.note(.nodesMalformed)]
        }
        guard believes(told, now) else {
            daemon.nodesDueAt = now + limits.doubtRest
            return [.note(.nodesDoubted)]
        }
        daemon.doubtedAt = nil
        return adopt(told, now) + [.note(.nodesTaken)]
    }

    /// A list with half of the nodes would end half of all connections, and only time distinguishes it from a
    /// true one.
    private mutating func believes(_ told: ServiceNodes, _ now: ContinuousClock.Instant) -> Bool {
        if told.nodes.isEmpty { return nodes.isEmpty }
        guard told.nodes.count * 2 < nodes.count else { return true }
        guard let doubtedAt = daemon.doubtedAt else {
            daemon.doubtedAt = now
            return false
        }
        return now - doubtedAt >= limits.doubtRest
    }

    private mutating func adopt(_ told: ServiceNodes, _ now: ContinuousClock.Instant) -> [Action] {
        height = told.height
        // Swarms change with blocks alone.
        if told.blockHash == blockHash, nodes.count == told.nodes.count { return [] }
        blockHash = told.blockHash
        map = told.swarms
        places = [:]
        var actions: [Action] = []
        let wanted = Dictionary(told.nodes.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        for (key, node) in nodes where wanted[key] == nil {
            if node.dial.isOpen { actions.append(.close(.node(key))) }
            stopWatching(key)
            nodes[key] = nil
        }
        let arcs = Dictionary(
            Set(told.nodes.map(\.swarm)).map { ($0, map.arc(of: $0)) },
            uniquingKeysWith: { first, _ in first })
        members = [:]
        for node in told.nodes {
            members[node.swarm, default: []].append(node.key)
            actions += adopt(node, arcs[node.swarm] ?? nil, now)
        }
        // New nodes are divided now, not with the next second.
        return actions + share(now) + fillPlaces(now)
    }

    private mutating func adopt(
        _ node: StorageNode, _ arc: SwarmArc?, _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard let known = nodes[node.key] else {
            nodes[node.key] = Node(node: node, arc: arc)
            return []
        }
        nodes[node.key]?.node = node
        nodes[node.key]?.move(to: arc, at: now, limits)
        if known.node.address != node.address || known.node.port != node.port, known.dial.phase != .off {
            stopWatching(node.key)
            nodes[node.key]?.dial.wait(at: now)
            return known.dial.isOpen ? [.close(.node(node.key))] : []
        }
        // Its part of the ring has changed: everything in it is shown again.
        if known.arc != arc, known.dial.isConnected {
            stopWatching(node.key)
            let watching = Watching(last: table.last, renewAt: now + renewalSpan())
            nodes[node.key]?.watching = watching
            return advance(node.key, now)
        }
        return []
    }
}
