import Delivery
import PushModel
import StatusPush
import Synchronization
import WakuIngress

/// What an instance does beside answering: it follows the topics of who has registered, at whatever process,
/// and takes its share of them while its node is there. It outlives a reload that keeps the key.
final class StatusLink: InstanceService {
    let topics: StatusTopics
    let share: StatusShare
    private let ingress: Mutex<WakuIngress>
    private let limits: StatusHostLimits
    private let world: World
    private let stopping = Bell()

    init(
        _ topics: StatusTopics, share: StatusShare, ingress: WakuIngress, limits: StatusHostLimits,
        world: World
    ) {
        self.topics = topics
        self.share = share
        self.ingress = Mutex(ingress)
        self.limits = limits
        self.world = world
    }

    /// Another way to the network.
    func adopt(_ ingress: WakuIngress) { self.ingress.withLock { $0 = ingress } }

    func stop() { stopping.ring() }

    func run() async throws {
        await withTaskCancellationHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.topics.follow() }
                group.addTask { await self.tick() }
                await self.stopping.waitThroughCancellation()
                group.cancelAll()
            }
        } onCancel: {
            self.stop()
        }
        share.hears(false)
    }

    private func tick() async {
        var ended: Set<OwnerID> = []
        while !Task.isCancelled {
            ended = lookAgain(after: ended)
            share.hears(!ingress.withLock(\.self).statistics.hearsNobody)
            topics.look()
            // The sleep ends early only by cancellation, which ends the loop.
            do { try await world.sleep(world.instant() + limits.lookEvery) } catch { return }
        }
    }
}

extension StatusLink {
    /// What a process that has ended may have left unanswered comes from the store once more.
    ///
    /// - Parameter known: those of whom it has been asked.
    /// - Returns: those of now.
    func lookAgain(after known: Set<OwnerID>) -> Set<OwnerID> {
        let ended = share.ended
        for one in ended where !known.contains(one.owner) {
            let ago = max(.zero, world.instant() - one.workedUntil)
            ingress.withLock(\.self).lookAgain(since: world.now() - ago)
        }
        return Set(ended.map(\.owner))
    }
}

extension WakuIngress: InstanceService {}

extension RelaySpans {
    private enum Waku: SpanKey {
        static var standard: WakuLimits {
            var limits = WakuLimits()
            // Most of them wait for the first answer of a push service, two seconds at most.
            limits.workers = 512
            return limits
        }
    }

    /// Deadlines and bounds of the way to the Waku network.
    var waku: WakuLimits {
        get { self[Waku.self] }
        set { self[Waku.self] = newValue }
    }
}
