package import CoreMetrics
package import Delivery
import EventLoops
package import MarmotPublishing
package import MarmotPush
import NIOCore
package import PushModel
import Secp256k1Keys
import ServiceLifecycle
import Synchronization
package import WebSocket

/// Listens at one instance's inbox relays and hands every wrap that comes to the role: one connection for
/// each relay, one queue for all, a few workers.
///
/// Doubles across relays are left to the role, which knows them by id; so are signatures.
package final class NostrIngress: Service {
    /// Takes one event in: role, then delivery. It returns no answer and throws no error. The number tells
    /// relays apart.
    package typealias Take = @Sendable (NostrEvent, EventSource, Int) async -> Void

    package let name: ConfiguredName
    private let around: InboxRelay.Surroundings
    /// One share for each relay, and one for what fell to processes that have gone.
    private let queue: ShareQueue<Int, WrapArrival>
    private let share: WrapShare
    private let metrics: NostrMetrics
    private let world: World
    private let limits: NostrLimits
    private let selfTest: SelfTest
    private let client: WebSocketClient
    private let note: @Sendable (NostrRelay, RelayNote) -> Void
    private let changed = Bell()
    private let current: Mutex<Current>

    private struct Current {
        var settings: NostrSettings
        var take: Take
        var relays: [InboxRelay] = []
        /// Links that run, or are about to; the pool starts those that wait.
        var waiting: [InboxRelay] = []
        var shares = 0
        var isStopping = false
        /// Relays that stay must be told of another list.
        var listsDue = false
    }

    /// - Parameters:
    ///   - document: fetches a relay's document; `nil`: documents are not asked for.
    ///   - membership: who else may listen for this instance; `nil`: nobody.
    package init(
        name: ConfiguredName, settings: NostrSettings, client: WebSocketClient,
        document: DocumentFetch? = nil,
        membership: Membership? = nil, limits: NostrLimits = NostrLimits(),
        world: World, journal: Journal,
        metrics factory: any MetricsFactory, take: @escaping Take
    ) {
        self.name = name
        self.world = world
        self.limits = limits
        let metrics = NostrMetrics(name, factory)
        self.metrics = metrics
        let queue = ShareQueue<Int, WrapArrival>(
            share: limits.share(among: settings.relays.count), .whole)
        self.queue = queue
        let share = WrapShare(of: name, membership, limits: limits)
        self.share = share
        let selfTest = SelfTest(limits: limits, world: world)
        self.selfTest = selfTest
        self.client = client
        let note: @Sendable (NostrRelay, RelayNote) -> Void = { relay, note in
            metrics.count(note)
            Self.log(note, of: relay, at: name, journal)
        }
        self.note = note
        around = InboxRelay.Surroundings(
            client: client, queue: queue, limits: limits, world: world, document: document, note: note,
            share: share, selfTest: selfTest, passedOver: { metrics.passedOver.increment() })
        current = Mutex(Current(settings: settings, take: take))
        adopt(settings, take: take)
    }

    // MARK: Reloading

    /// Puts other settings in force: connections to relays that stay go on, unless keys, backlog or proxy
    /// have changed.
    package func adopt(_ settings: NostrSettings, take: @escaping Take) {
        let gone = current.withLock { state -> [InboxRelay] in
            let keeps = settings.keepsConnections(of: state.settings)
            let wanted = Array(settings.relays.prefix(NostrLimits.relays))
            let kept = keeps ? state.relays.filter { wanted.contains($0.relay) } : []
            let gone = state.relays.filter { relay in !kept.contains { $0 === relay } }
            let lists = self.lists(settings)
            for relay in wanted where !kept.contains(where: { $0.relay == relay }) {
                state.shares += 1
                let link = InboxRelay(
                    relay, share: state.shares, settings: settings, lists: lists, around: around)
                state.relays.append(link)
                state.waiting.append(link)
            }
            state.relays.removeAll { relay in gone.contains { $0 === relay } }
            state.waiting.removeAll { relay in gone.contains { $0 === relay } }
            let changesLists = !kept.isEmpty && state.settings.relays != settings.relays
            state.settings = settings
            state.take = take
            state.listsDue = changesLists
            metrics.configured.set(state.relays.count)
            queue.setShare(limits.share(among: wanted.count))
            return gone
        }
        for relay in gone { relay.stop() }
        changed.ring()
    }

    /// Our relay list, one event for each key (NIP-17; docs/conformance/marmot.md).
    private func lists(_ settings: NostrSettings) -> [NostrEvent] {
        let urls = settings.relays.prefix(NostrLimits.relays).map(\.url)
        return settings.keys.map { pair in
            RelayList.event(
                relays: urls, at: world.now().seconds, by: pair, auxiliary: world.randomBytes(32))
        }
    }

    /// Relays whose subscription is in force, and those configured.
    package func presence() async -> (listening: Int, configured: Int) {
        let relays = current.withLock(\.relays)
        var count = 0
        for relay in relays where await relay.isListening { count += 1 }
        return (count, relays.count)
    }

    /// Whether this process publishes the relay list for all that listen.
    package var speaks: Bool { share.speaks }

    package func stop() {
        let relays = current.withLock { state in
            state.isStopping = true
            return state.relays
        }
        for relay in relays { relay.stop() }
        share.listens(false)
        changed.ring()
    }

    // MARK: Running

    /// Listens until a graceful stop or ``stop()``, then opens what was taken, and returns.
    package func run() async throws {
        await queue.serve(
            workers: max(1, min(limits.workers, System.coreCount)), take: { await self.take($0) },
            stop: { self.stop() }
        ) {
            await self.listen()
        }
    }

    private func listen() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.tick() }
            group.addTask { await self.testRelays() }
            if share.isShared { group.addTask { await self.takeUp() } }
            await withDiscardingTaskGroup { links in
                while let fresh = self.fresh() {
                    // Where the connections live: a message costs no change of threads.
                    for link in fresh {
                        links.addTask(executorPreference: self.client.executor) { await link.run() }
                    }
                    await self.changed.waitThroughCancellation()
                }
            }
            group.cancelAll()
        }
        metrics.connected.set(0)
    }

    /// Relays to start; `nil` when the pool stops.
    private func fresh() -> [InboxRelay]? {
        current.withLock { state in
            defer { state.waiting = [] }
            return state.isStopping ? nil : state.waiting
        }
    }

    private func tick() async {
        var listsMadeAt = world.instant()
        var spoke = share.speaks
        while true {
            // The sleep ends early only by cancellation, which ends the pool.
            do { try await world.sleep(world.instant() + limits.tick) } catch { return }
            let (relays, settings, isDue) = current.withLock { state in
                defer { state.listsDue = false }
                return (state.relays, state.settings, state.listsDue)
            }
            // A process that starts to act for all publishes the present state at once.
            let begins = share.speaks && !spoke
            spoke = share.speaks
            // A list is signed again before it is published again, because some relays keep no old ones.
            if isDue || begins || world.instant() - listsMadeAt >= limits.listInterval {
                listsMadeAt = world.instant()
                let lists = lists(settings)
                for relay in relays { await relay.adopt(lists) }
            }
            var listening = 0
            for relay in relays where await relay.isListening { listening += 1 }
            metrics.connected.set(listening)
            metrics.queued.set(queue.count)
            metrics.held.set(share.held)
            if !current.withLock(\.isStopping) { share.listens(listening > 0) }
        }
    }

    /// Publishes triggers to ourselves, as a stranger would, and checks whether they arrive.
    private func testRelays() async {
        var wait = limits.firstSelfTest
        // Rounds in which a test was lost, in a row.
        var losses = 0
        while true {
            // The sleep ends early only by cancellation, which ends the pool.
            do { try await world.sleep(world.instant() + wait) } catch { return }
            wait = limits.selfTestEvery
            let (relays, settings) = current.withLock { ($0.relays, $0.settings) }
            // One of the processes that listen for this key makes the tests.
            guard settings.testsItself, share.speaks, let key = settings.keys.first?.publicKey else {
                // A relay that this process no longer tests would never be found well again, so its result is
                // dropped.
                for relay in relays where await relay.isDeaf { await relay.tested(isHeard: true) }
                continue
            }
            let publisher = NostrPublisher(client: client, proxy: settings.proxy, world: world)
            await withDiscardingTaskGroup { tests in
                for relay in relays where await relay.isSubscribed {
                    tests.addTask { [selfTest, note] in
                        let outcome = await selfTest.run(
                            relay.relay, share: relay.share, for: key, by: publisher)
                        // A process that is stopped meanwhile does not report it.
                        if Task.isCancelled { return }
                        note(relay.relay, outcome)
                        await relay.tested(isHeard: outcome.isHeard)
                    }
                }
            }
            // Also relays that are just being reconnected, or that accepted nothing from strangers this time.
            var isOneDeaf = false
            for relay in relays where await relay.isDeaf { isOneDeaf = true }
            losses = isOneDeaf ? losses + 1 : 0
            if isOneDeaf {
                wait = limits.selfTestAgain.doubled(losses - 1, atMost: limits.selfTestEvery)
            }
        }
    }

    /// Wraps of processes that have gone. Apart from the tick, because it waits while the queue is full.
    private func takeUp() async {
        while true {
            // The sleep ends early only by cancellation, which ends the pool.
            do { try await world.sleep(world.instant() + limits.tick) } catch { return }
            for item in share.takeUp() {
                metrics.takenUp.increment()
                _ = await queue.put(item, bytes: item.size, of: item.relay)
            }
        }
    }

    private func take(_ item: WrapArrival) async {
        metrics.taken(item.source)
        let take = current.withLock(\.take)
        await take(item.event, item.source, item.relay)
    }

    private static func log(
        _ note: RelayNote, of relay: NostrRelay, at instance: ConfiguredName, _ journal: Journal
    ) {
        guard let level = note.level else { return }
        let name: any LogSafe = relay.name ?? NoteCode("unnamed")
        if let detail = note.detail {
            journal.note(
                "nostr relay", [.instance: instance, .relay: name, .note: note.code, .code: detail],
                level: level)
        } else {
            journal.note("nostr relay", [.instance: instance, .relay: name, .note: note.code], level: level)
        }
    }
}
