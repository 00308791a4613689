import MessageSockets
import PushModel
import SessionPush
import WireFormats

// The rotation: which watches each node is shown, and what follows from its replies.
extension SwarmLinkState {
    /// New rows: their nodes are shown them at once.
    mutating func grew(_ entries: [WatchEntry], _ now: ContinuousClock.Instant) -> [Action] {
        var swarms: Set<UInt64> = []
        for entry in entries {
            table.add(entry)
            if let swarm = map.swarm(of: entry.point) { swarms.insert(swarm) }
        }
        var actions: [Action] = []
        for swarm in swarms {
            for key in members[swarm] ?? [] where nodes[key]?.watching != nil {
                nodes[key]?.watching?.grew()
                actions += advance(key, now)
            }
        }
        return actions
    }

    mutating func watchTick(_ key: NodeKey, _ now: ContinuousClock.Instant) -> [Action] {
        guard let watching = nodes[key]?.watching else { return [] }
        var actions: [Action] = []
        for (lane, work) in watching.works {
            switch work {
            case .resting(let end) where end <= now: nodes[key]?.watching?[lane] = .idle
            case .asked(_, let end, let id, let batch) where end <= now:
                actions.append(.note(.replyLate))
                letGo(id, LanePlace(node: key, lane: lane))
                nodes[key]?.watching?.struck(again: now + limits.strikeRest)
                // Other nodes of the swarm have it: watches that are missing here are shown later.
                nodes[key]?.watching?.went(lane, through: batch.through, isLast: false)
            case .idle, .resting, .reading, .asked: break
            }
        }
        guard watching.strikes + actions.count < limits.strikes else {
            return actions + ended(.node(key), .struckOut, now)
        }
        let (last, next) = (table.last, now + renewalSpan())
        nodes[key]?.watching?.renew(at: now, last: last, next: next)
        return actions + advance(key, now)
    }

    /// Starts whatever the node's lanes can start.
    mutating func advance(_ key: NodeKey, _ now: ContinuousClock.Instant) -> [Action] {
        var actions: [Action] = []
        for lane in Watching.Lane.allCases {
            // Ends, because each round starts something or moves towards the table's end.
            while let after = nodes[key]?.watching?.cursor(of: lane) {
                guard let begun = begin(lane, of: key, after: after, now) else { break }
                actions += begun
            }
        }
        return actions
    }

    /// - Returns: `nil` when it must wait for others.
    private mutating func begin(
        _ lane: Watching.Lane, of key: NodeKey, after: UInt64, _ now: ContinuousClock.Instant
    ) -> [Action]? {
        guard let arc = nodes[key]?.arc else {
            let last = table.last
            nodes[key]?.watching?.went(lane, through: last, isLast: true)
            return []
        }
        let place = Place(swarm: arc.id, after: after)
        if let id = places[place], batches[id] != nil {
            batches[id]?.lanes.insert(LanePlace(node: key, lane: lane))
            nodes[key]?.watching?[lane] = .reading(id)
            return batches[id]?.batch.map { show(id, $0, lane, of: key, now) } ?? []
        }
        let (revisions, through) = table.next(after: after, in: arc, limit: limits.rowsPerBatch)
        if revisions.isEmpty {
            nodes[key]?.watching?.went(lane, through: through, isLast: true)
            return []
        }
        if batches.count >= limits.batchesAtOnce { dropUnused() }
        guard batches.count < limits.batchesAtOnce else { return nil }
        nextReading += 1
        batches[nextReading] = Batch(place: place, lanes: [LanePlace(node: key, lane: lane)])
        places[place] = nextReading
        nodes[key]?.watching?[lane] = .reading(nextReading)
        return [.read(WatchReading(id: nextReading, revisions: revisions, through: through))]
    }

    // MARK: Reading

    mutating func read(_ id: Int, _ batch: WatchBatch?, _ now: ContinuousClock.Instant) -> [Action] {
        guard let waiting = batches[id] else { return [] }
        guard let batch else {
            drop(id)
            for place in waiting.lanes where nodes[place.node]?.watching?[place.lane].reading == id {
                nodes[place.node]?.watching?[place.lane] = .resting(until: now + limits.storeRest)
            }
            return [.note(.storeSilent)]
        }
        for revision in batch.ended { table.remove(revision) }
        batches[id]?.batch = batch
        batches[id]?.readAt = now
        var actions: [Action] = []
        for place in waiting.lanes where nodes[place.node]?.watching?[place.lane].reading == id {
            actions += show(id, batch, place.lane, of: place.node, now)
        }
        for node in Set(waiting.lanes.map(\.node)) { actions += advance(node, now) }
        return actions
    }

    private mutating func show(
        _ id: Int, _ batch: WatchBatch, _ lane: Watching.Lane, of key: NodeKey,
        _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard let body = batch.body else {
            letGo(id, LanePlace(node: key, lane: lane))
            nodes[key]?.watching?.went(lane, through: batch.through, isLast: false)
            return []
        }
        let tag = tag()
        nodes[key]?.watching?[lane] = .asked(
            tag: tag, until: now + limits.replyDeadline, id: id, batch: batch)
        return [.send(.node(key), [.text("monitor.messages"), .bytes(tag), .shared(body)])]
    }

    // MARK: Replies

    mutating func replied(
        _ key: NodeKey, _ tag: Secret, _ parts: [Secret], _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard let (lane, id, batch) = awaited(key, tag) else { return stray(key, now) }
        letGo(id, LanePlace(node: key, lane: lane))
        nodes[key]?.watching?.answered()
        var actions = parts.count == 1 ? judge(parts[0], to: batch, by: key, now) : [.note(.replyMalformed)]
        nodes[key]?.watching?.went(lane, through: batch.through, isLast: false)
        actions += advance(key, now)
        return actions
    }

    mutating func replyRefused(_ key: NodeKey, _ tag: Secret, _ now: ContinuousClock.Instant) -> [Action] {
        guard let (lane, id, batch) = awaited(key, tag) else { return stray(key, now) }
        letGo(id, LanePlace(node: key, lane: lane))
        nodes[key]?.watching?.struck(again: now + limits.strikeRest)
        nodes[key]?.watching?.went(lane, through: batch.through, isLast: false)
        guard nodes[key]?.watching?.strikes ?? 0 < limits.strikes else {
            return [.note(.requestRefused)] + ended(.node(key), .struckOut, now)
        }
        return [.note(.requestRefused)] + advance(key, now)
    }

    /// The lane whose request has the tag.
    private func awaited(
        _ key: NodeKey, _ tag: Secret
    ) -> (lane: Watching.Lane, id: Int, batch: WatchBatch)? {
        for (lane, work) in nodes[key]?.watching?.works ?? [:] {
            guard case .asked(let expected, _, let id, let batch) = work,
                tag.reveal({ $0.elementsEqual(expected) })
            else { continue }
            return (lane, id, batch)
        }
        return nil
    }

    private mutating func judge(
        _ body: Secret, to batch: WatchBatch, by key: NodeKey, _ now: ContinuousClock.Instant
    ) -> [Action] {
        let reply: MonitorReply
        do throws(FormatError) {
            reply = try body.reveal { (raw) throws(FormatError) in
                try MonitorReply(parsing: raw, atMost: batch.shown.count)
            }
        } catch {
            return [.note(.replyMalformed)]
        }
        // We always send a list, so a single dictionary answers all of it.
        if reply.isSingle {
            guard case .refused(let refusal) = reply.answers.first else { return [.note(.replyMalformed)] }
            return [.refused(refusal)]
        }
        // A node that is not connected yet is asked later, by us or by another process; a watch that left the
        // rotation before would never be shown to it. The operator is told by the votes of the nodes that
        // fall to us.
        let swarm = nodes[key].flatMap { members[$0.node.swarm] } ?? [key]
        let ours = swarm.filter { nodes[$0]?.dial.phase != .off }
        var actions: [Action] = []
        var shown = 0
        var ended: [UInt64] = []
        // Nodes and we learn of a block at different times, which alone need not be reported.
        let isStrange = disagrees(key, reply, now)
        for (revision, answer) in zip(batch.shown, reply.answers) {
            switch answer {
            case .watched: shown += 1
            case .refused(let refusal):
                actions.append(.refused(refusal))
                if refusal != .wrongSwarm || isStrange {
                    refused.add(revision, by: key, of: ours.count, at: now)
                }
                // A node with another clock says nothing about the signature.
                if refusal == .signature, verdicts.add(revision, by: key, of: swarm.count) {
                    ended.append(revision)
                }
                if refusal.isForGood, votes.add(revision, by: key, of: swarm.count) {
                    table.remove(revision)
                    actions.append(.note(.watchEnded))
                }
            }
        }
        if reply.answers.count < batch.shown.count { actions.append(.note(.replyMalformed)) }
        if !ended.isEmpty { actions.append(.end(ended)) }
        return actions + [.shown(shown)]
    }

    /// If a node says that accounts belong to another swarm, it is shown them again soon.
    ///
    /// - Returns: whether it says so once more.
    private mutating func disagrees(
        _ key: NodeKey, _ reply: MonitorReply, _ now: ContinuousClock.Instant
    ) -> Bool {
        guard reply.answers.contains(.refused(.wrongSwarm)) else {
            nodes[key]?.watching?.agreed()
            return false
        }
        return nodes[key]?.watching?.disagreed(
            at: now, first: limits.strikeRest, most: limits.renewal.lowerBound) ?? false
    }

    /// A node has ended a watch, because its account is another swarm's by the node's list (since 2.12).
    mutating func watchEnded(
        _ key: NodeKey, _ body: Secret, _ now: ContinuousClock.Instant
    ) -> [Action] {
        guard body.count <= SwarmFormLimits.pushBytes, nodes[key]?.watching != nil else {
            return stray(key, now)
        }
        _ = nodes[key]?.watching?.disagreed(
            at: now, first: limits.strikeRest, most: limits.renewal.lowerBound)
        // If it is right, our list already says so.
        daemon.wantsNodes = true
        return [.note(.watchTakenBack)]
    }

    // MARK: Batches

    /// A lane no longer needs the batch.
    mutating func letGo(_ id: Int, _ place: LanePlace) { batches[id]?.lanes.remove(place) }

    mutating func stopWatching(_ key: NodeKey) {
        for (lane, work) in nodes[key]?.watching?.works ?? [:] {
            if let id = work.reading { letGo(id, LanePlace(node: key, lane: lane)) }
        }
        nodes[key]?.watching = nil
    }

    private mutating func drop(_ id: Int) {
        guard let batch = batches.removeValue(forKey: id) else { return }
        if places[batch.place] == id { places[batch.place] = nil }
    }

    private mutating func dropUnused() {
        for (id, batch) in batches where batch.lanes.isEmpty && batch.readAt != nil { drop(id) }
    }

    /// Batches that no lane needs are kept for a moment, because other nodes of the swarm reach the same
    /// place. They are not kept for long, because rows change.
    mutating func forgetOldBatches(_ now: ContinuousClock.Instant) {
        for (id, batch) in batches {
            guard let readAt = batch.readAt, now - readAt >= limits.batchLife else { continue }
            if batch.lanes.isEmpty {
                drop(id)
            } else if places[batch.place] == id {
                places[batch.place] = nil
            }
        }
    }
}
