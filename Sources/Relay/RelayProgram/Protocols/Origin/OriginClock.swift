import OriginServer
import PushModel

/// What an origin does by the clock: it answers polls that have waited long enough, and sees to its realms
/// and registrations once a minute. In a loop of its own, because a relay that is silent would keep other
/// instances from their sweeps.
final class OriginClock: InstanceService {
    private let polls: EventPolls
    private let upkeep: OriginUpkeep
    private let world: World
    private let journal: Journal
    private let over = Bell()

    private static let every = Duration.seconds(60)

    init(_ polls: EventPolls, _ upkeep: OriginUpkeep, _ world: World, _ journal: Journal) {
        self.polls = polls
        self.upkeep = upkeep
        self.world = world
        self.journal = journal
    }

    func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.polls.run() }
            group.addTask { await self.look() }
            await over.wait()
            polls.end()
            group.cancelAll()
        }
    }

    private func look() async {
        while !Task.isCancelled {
            do throws(OriginError) { try await upkeep.look() } catch {
                journal.note("sweep failed", [.code: ErrorCode(error)], level: .warning)
            }
            // It ends early only by cancellation, which ends the loop.
            do { try await world.sleep(world.instant() + Self.every) } catch { return }
        }
    }

    func stop() {
        polls.end()
        over.ring()
    }
}
