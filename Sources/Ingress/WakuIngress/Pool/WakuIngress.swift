import Delivery
package import PushModel
import ServiceLifecycle
import StatusPush
import Synchronization

/// The way in from the Waku network, over one node's REST interface: polls the node, and passes on messages
/// of followed topics. The ``WakuOutlet`` of the same node sends the answers.
///
/// A node forgets messages that it has returned, and loses those that it could not keep: after each gap, and
/// at the start, the store is asked. So a message may come twice; it is passed on once.
package final class WakuIngress: Service {
    /// Takes one message in: role, then delivery. It throws no error, and returns whether the message is
    /// done. If not, the message is passed on again when it comes again.
    package typealias Take = @Sendable (WakuArrival) async -> Bool

    private let outlet: WakuOutlet
    private let topics: FollowedTopics
    private let limits: WakuLimits
    private let world: World
    private let journal: Journal
    /// One share: all messages come from one node.
    private let queue: ShareQueue<ConfiguredName, WakuArrival>
    private let gap = Gap()
    private let current: Mutex<Current>
    private let link: Mutex<LinkState>
    private let health: Mutex<HealthState>
    private let heard = Atomic(0)
    private let received = Atomic(0)
    /// Gaps that were given up, and when the last one was.
    private let missed = Mutex<(count: Int, last: ContinuousClock.Instant)?>(nil)
    private let began: UnixTime
    private let stopping = Bell()
    /// The topics are known, or the ingress stops.
    private let known = Bell()
    private let isStopping = Atomic(false)

    /// In a structure, because a lock around a bare closure wraps it once more at each access.
    private struct Current: Sendable {
        var take: Take
    }

    /// - Parameters:
    ///   - outlet: of the node that is polled.
    ///   - topics: the topics to listen to; listening begins when they are known
    ///     (``FollowedTopics/begin(with:)``).
    package init(
        beside outlet: WakuOutlet, topics: FollowedTopics, limits: WakuLimits = WakuLimits(), world: World,
        journal: Journal, take: @escaping Take
    ) {
        self.outlet = outlet
        self.topics = topics
        self.limits = limits
        self.world = world
        self.journal = journal
        current = Mutex(Current(take: take))
        queue = ShareQueue(share: limits.queuedBytes, .overrun)
        began = world.now()
        link = Mutex(LinkState(limits: limits, since: began - limits.startReach))
        health = Mutex(HealthState(start: began))
    }

    private var name: ConfiguredName { outlet.name }
    private var calls: WakuCalls { outlet.calls }
    private var metrics: WakuMetrics { outlet.metrics }
    private var seen: SeenWakuMessages { outlet.seen }

    /// Replaces the handler of messages.
    package func adopt(take: @escaping Take) { current.withLock { $0.take = take } }

    package var statistics: WakuStatistics {
        var statistics = WakuStatistics()
        statistics.isListening = link.withLock(\.isListening)
        statistics.health = health.withLock(\.health)
        statistics.topics = topics.count
        (statistics.queued, statistics.queuedBytes) = (queue.count, queue.bytes(of: name))
        statistics.publishing = outlet.publishing
        statistics.hasGap = gap.isOpen
        statistics.missed = missed(at: world.instant())
        if statistics.isListening { statistics.refused = outlet.refused }
        statistics.heard = heard.load(ordering: .relaxed)
        statistics.received = received.load(ordering: .relaxed)
        statistics.published = outlet.published
        return statistics
    }

    // MARK: In

    package func stop() {
        isStopping.store(true, ordering: .relaxed)
        stopping.ring()
        known.ring()
    }

    /// Listens until a graceful stop or ``stop()``; then it passes on what was taken, and returns. The node
    /// goes on listening, so that messages of the meantime are there later.
    package func run() async throws {
        await queue.serve(
            workers: limits.workers, take: { await self.take($0) }, stop: { self.stop() }
        ) {
            await self.listen()
        }
    }

    private func listen() async {
        topics.ringWhenKnown(known)
        await known.wait()
        await withDiscardingTaskGroup { helpers in
            helpers.addTask { await self.fetchGaps() }
            helpers.addTask { await self.watch() }
            await self.poll()
            helpers.cancelAll()
        }
        metrics.show(WakuStatistics())
    }

    /// Polls, one call at a time. The messages of an answer are passed on even if the ingress stops
    /// meanwhile, because the node has forgotten them.
    private func poll() async {
        while !isStopping.load(ordering: .relaxed) {
            let begunAt = world.now()
            let step: LinkState.Step
            switch link.withLock(\.duty) {
            case .leave:
                // Whatever the result, subscribing comes next.
                try? await calls.unsubscribe()
                step = link.withLock { $0.left() }
            case .subscribe:
                let fault = await fault { () async throws(NodeFault) in try await self.calls.subscribe() }
                step = link.withLock { $0.subscribed(fault, random: world.random()) }
            case .poll:
                let outcome = await pollOnce()
                step = link.withLock { $0.polled(outcome, begunAt: begunAt, random: world.random()) }
            }
            for note in step.notes { take(note) }
            if let since = step.gapSince { gap.open(since: since) }
            if let span = step.rest { await rest(span) }
        }
    }

    private func pollOnce() async -> LinkState.Outcome {
        let batch: NodeBatch
        do throws(NodeFault) {
            batch = try await calls.messages { self.topics.contains($0) }
        } catch {
            return .failed(error)
        }
        await hand(on: batch, .live)
        return batch.isCut ? .cut : .whole(batch.heard)
    }

    /// Puts messages that are new into the queue, which may take as long as the workers do.
    private func hand(on batch: NodeBatch, _ source: WakuArrival.Source) async {
        heard.add(batch.heard, ordering: .relaxed)
        metrics.count(.foreign, batch.foreign)
        metrics.count(.malformed, batch.malformed)
        for (message, topic) in batch.messages {
            let hash = message.hash(pubsubTopic: outlet.node.pubsubTopic)
            guard seen.begin(hash) else {
                metrics.count(.repeated)
                continue
            }
            let arrival = WakuArrival(message: message, topic: topic, source: source, hash: hash)
            guard await queue.put(arrival, bytes: arrival.size, of: name) else {
                return seen.end(hash, isTaken: false)
            }
            received.add(1, ordering: .relaxed)
            metrics.count(source == .live ? .live : .stored)
        }
    }

    private func take(_ arrival: WakuArrival) async {
        let take = current.withLock(\.take)
        let isTaken = await take(arrival)
        seen.end(arrival.hash, isTaken: isTaken)
    }

    // MARK: What was missed

    private func fetchGaps() async {
        while let since = await gap.next() {
            var fetch = GapFetch(since: since, now: world.now(), limits: limits)
            // Ends, because each round takes a page or counts an attempt, and both are bounded.
            while !fetch.isOver {
                let fault = await fetchPage(&fetch)
                if Task.isCancelled { return }
                guard let fault else { continue }
                if fetch.failed(fault) { take(.storeAbsent) }
                if !fetch.isOver { await pause(fetch.rest(random: world.random())) }
            }
            gap.close()
            take(fetch.isComplete ? .gapFetched : .gapGivenUp)
            // Messages from before the start are not known to be missed.
            if !fetch.isComplete, since >= began { miss() }
            await pause(limits.storeRest)
        }
    }

    private func miss() {
        let now = world.instant()
        let before = missed(at: now)
        missed.withLock { $0 = (before + 1, now) }
    }

    private func missed(at now: ContinuousClock.Instant) -> Int {
        missed.withLock { $0 }.map { now - $0.last < limits.missedFor ? $0.count : 0 } ?? 0
    }

    private func fetchPage(_ fetch: inout GapFetch) async -> NodeFault? {
        do throws(NodeFault) {
            let page = try await calls.history(fetch.range, cursor: fetch.cursor) {
                self.topics.contains($0)
            }
            await hand(on: page.batch, .stored)
            return fetch.took(page)
        } catch {
            return error
        }
    }

    /// Asks the store once more for messages since then, and passes on those that were not taken.
    package func lookAgain(since: UnixTime) { gap.open(since: since) }

    // MARK: Beside

    private func watch() async {
        var askAt = world.instant()
        while !Task.isCancelled {
            if world.instant() >= askAt {
                askAt = world.instant() + limits.healthEvery
                let askedAt = world.now()
                look(await calls.health(), askedAt: askedAt)
            }
            metrics.show(statistics)
            await pause(limits.tick)
        }
    }

    private func look(_ now: WakuHealth, askedAt: UnixTime) {
        let (note, since) = health.withLock { $0.took(now, askedAt: askedAt) }
        if let note { take(note) }
        if let since { gap.open(since: since) }
    }

    private func take(_ note: WakuNote) {
        metrics.count(note)
        journal.note("waku node", [.instance: name, .note: note.code], level: note.level)
    }

    /// Sleeps for this long, or until the task is cancelled.
    private func pause(_ span: Duration) async {
        // The sleep ends early only by cancellation, which every caller looks for.
        try? await world.sleep(world.instant() + span)
    }

    /// Sleeps for this long, or until the ingress stops.
    private func rest(_ span: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.pause(span) }
            group.addTask { await self.stopping.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private func fault(_ body: () async throws(NodeFault) -> Void) async -> NodeFault? {
        do throws(NodeFault) {
            try await body()
            return nil
        } catch {
            return error
        }
    }
}
