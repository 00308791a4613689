package import CoreMetrics
package import Delivery
import MessageSockets
package import Primitives
package import PushModel
import ServiceLifecycle
package import SessionPush
import Synchronization
import WireFormats

/// What one instance listens to.
package struct SwarmSettings: Sendable {
    package var daemon: DaemonAddress
    /// The key pair that storage servers know us by. Each process has its own, because one server does not
    /// accept two connections with one key.
    package var pair: X25519KeyPair
    /// Where the subscriptions are.
    package var space: Space

    package init(daemon: DaemonAddress, pair: X25519KeyPair, space: Space) {
        self.daemon = daemon
        self.pair = pair
        self.space = space
    }
}

/// The link to the swarm: shows storage servers the accounts to watch, and passes on what they report.
///
/// One thread owns all sockets. Registering and watching are separate: only the registry connects them, and
/// the bell only says that there is something new in it.
package final class SwarmIngress: Service {
    /// Takes one message in: role, then delivery. It throws no error.
    package typealias Take = @Sendable (StorageNotice) async -> Taken

    /// The result of taking a message in.
    package enum Taken: Sendable, Hashable {
        /// It is in custody, or nobody wants it.
        case taken
        /// The store cannot take it now.
        case later
    }

    package let name: ConfiguredName
    private let settings: SwarmSettings
    private let source: WatchSource
    private let bell: Bell
    private let share: SwarmShare
    private let limits: SwarmLimits
    private let world: World
    private let journal: Journal
    private let metrics: SwarmMetrics
    private let current: Mutex<Current>
    private let thread: LinkThread?
    private let queue: ShareQueue<NodeKey, SwarmArrival>
    // They grow only with the thread's requests, which are bounded.
    private let readings = ShareQueue<Int, WatchReading>(share: .max, .overrun)
    private let endings = ShareQueue<Int, [UInt64]>(share: .max, .overrun)
    private let waitingEnds = Atomic(0)
    private let ending = Bell()
    private let stopping = Bell()
    private let received = Atomic(0)

    /// In a structure, because a lock around a bare closure wraps it once more at each access.
    private struct Current: Sendable {
        var take: Take
    }

    /// - Parameters:
    ///   - bell: rung after each commit of a subscription.
    ///   - membership: who else may serve this instance; `nil`: nobody.
    ///   - parse: reads a row's watch.
    package init(
        name: ConfiguredName, settings: SwarmSettings, registry: any Registry, bell: Bell,
        membership: Membership? = nil, limits: SwarmLimits = SwarmLimits(), world: World, journal: Journal,
        metrics factory: any MetricsFactory,
        parse: @escaping WatchSource.Parse = { MonitorRequest($0) }, take: @escaping Take
    ) {
        self.name = name
        self.settings = settings
        self.bell = bell
        self.limits = limits
        self.world = world
        self.journal = journal
        current = Mutex(Current(take: take))
        metrics = SwarmMetrics(name, factory)
        source = WatchSource(
            registry: registry, space: settings.space, limits: limits, now: world.now, parse: parse)
        let share = SwarmShare(of: name, membership, deafAfter: limits.deafAfter)
        self.share = share
        let thread = LinkThread(
            daemon: settings.daemon, pair: settings.pair, limits: limits, world: world,
            ours: { share.ours(of: $0) })
        self.thread = thread
        queue = ShareQueue(share: limits.share(among: 1), .overrun) { thread?.hasRoom($0) }
    }

    /// Replaces the handler of what nodes report.
    package func adopt(take: @escaping Take) { current.withLock { $0.take = take } }

    package var statistics: SwarmStatistics {
        var statistics = thread?.statistics ?? SwarmStatistics()
        statistics.received = received.load(ordering: .relaxed)
        return statistics
    }

    /// Hands its storage servers over to other processes on the store, and then stops; alone, at once.
    package func end() { ending.ring() }

    package func stop() { stopping.ring() }

    // MARK: Running

    /// Watches until a graceful stop, ``end()`` or ``stop()``; then it passes on what was taken, and returns.
    package func run() async throws {
        guard let thread else {
            journal.note("swarm link has no descriptors left", [.instance: name], level: .error)
            return
        }
        await queue.serve(
            workers: limits.workers, take: { await self.take($0) }, end: { self.end() }, stop: { self.stop() }
        ) {
            await self.link(thread)
        }
    }

    private func link(_ thread: LinkThread) async {
        let outlets = LinkThread.Outlets(
            queue: queue, readings: readings, ended: { self.noteEnds($0) }, note: { self.take($0) },
            metrics: metrics,
            received: {
                self.received.add(1, ordering: .relaxed)
                self.metrics.received.increment()
            })
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                if await !thread.run(outlets) {
                    self.journal.note("swarm link has no thread", [.instance: self.name], level: .error)
                }
            }
            await withTaskGroup(of: Void.self) { helpers in
                for _ in 0..<limits.readers { helpers.addTask { await self.read(for: thread) } }
                helpers.addTask { await self.endRows() }
                helpers.addTask { await self.look(for: thread) }
                helpers.addTask { await self.tick(thread) }
                helpers.addTask { await self.handOver() }
                await self.stopping.waitThroughCancellation()
                readings.close(dropping: true)
                endings.close(dropping: true)
                helpers.cancelAll()
            }
            thread.stop()
        }
        await share.leave()
        metrics.show(SwarmStatistics())
    }

    /// Storage servers tell only connected peers, and repeat nothing: so connections stay until others have
    /// theirs. The store's marks make one push of a message that both hear meanwhile.
    private func handOver() async {
        await ending.wait()
        if Task.isCancelled { return }
        let end = world.instant() + limits.handover
        if await share.leave() {
            // The sleep ends early only by cancellation, which is the stop.
            do { try await world.sleep(end) } catch { return }
        }
        stop()
    }

    /// Finds new registrations: rows that this process has not seen.
    private func look(for thread: LinkThread) async {
        var last: UInt64 = 0
        while !Task.isCancelled {
            do throws(StoreError) {
                while !Task.isCancelled, let page = try await source.page(after: last) {
                    last = page.last
                    // The thread has taken one page before the next is read.
                    let done = Bell()
                    thread.tell(.rows(page.entries), done: done)
                    await done.waitThroughCancellation()
                }
            } catch {
                take(.storeSilent)
                // The sleep ends early only by cancellation, which ends the loop.
                do { try await world.sleep(world.instant() + limits.storeRest) } catch { return }
            }
            await bell.wait()
        }
    }

    private func read(for thread: LinkThread) async {
        while let reading = await readings.take() {
            do throws(StoreError) {
                thread.tell(.read(reading.id, try await source.read(reading)))
            } catch {
                thread.tell(.read(reading.id, nil))
            }
        }
    }

    // MARK: Rows that swarms have refused

    private func noteEnds(_ revisions: [UInt64]) {
        guard waitingEnds.load(ordering: .relaxed) + revisions.count <= limits.endings else { return }
        waitingEnds.add(revisions.count, ordering: .relaxed)
        endings.add(revisions, bytes: 0, of: 0)
    }

    private func endRows() async {
        while let revisions = await endings.take() {
            while !Task.isCancelled {
                do throws(StoreError) {
                    try await source.end(revisions)
                    break
                } catch {
                    take(.storeSilent)
                    // The sleep ends early only by cancellation, which ends the loops.
                    do { try await world.sleep(world.instant() + limits.storeRest) } catch { return }
                }
            }
            waitingEnds.subtract(revisions.count, ordering: .relaxed)
        }
    }

    private func tick(_ thread: LinkThread) async {
        var lookAt = world.instant()
        while true {
            // The sleep ends early only by cancellation, which ends the link.
            do { try await world.sleep(world.instant() + limits.tick) } catch { return }
            let statistics = thread.statistics
            metrics.show(statistics)
            share.look(statistics, at: world.instant())
            if world.instant() >= lookAt {
                lookAt = world.instant() + limits.lookEvery
                bell.ring()
            }
        }
    }

    private func take(_ item: SwarmArrival) async {
        var notice: StorageNotice
        do throws(FormatError) {
            notice = try StorageNotice(parsing: item.body)
        } catch {
            return metrics.dropped(.malformed)
        }
        // A node speaks for the accounts of its own swarm.
        guard item.scope.contains(notice.account.swarmPoint) else { return metrics.dropped(.foreign) }
        notice.teller = item.node.digest.low
        await keep(notice)
    }

    /// Tries until the store has taken the message or it has expired, because nobody reports it again. A
    /// process that stops gives it up.
    private func keep(_ notice: StorageNotice) async {
        while true {
            let take = current.withLock(\.take)
            if await take(notice) == .taken { return }
            guard !queue.isClosed, notice.expiry > world.now() else { return metrics.dropped(.storeOut) }
            // The sleep ends early only by cancellation, which ends the process.
            do { try await world.sleep(world.instant() + limits.takeAgain) } catch {
                return metrics.dropped(.storeOut)
            }
        }
    }

    private func take(_ note: SwarmNote) {
        metrics.count(note)
        guard let level = note.level else { return }
        journal.note("swarm link", [.instance: name, .note: note.code], level: level)
    }
}
