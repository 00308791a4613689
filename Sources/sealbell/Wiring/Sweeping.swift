import PushModel
import ServiceLifecycle
import ZulipPush

/// Removes what origins have left behind, a page at a time, so that others' commits come in between.
struct SweepService: Service {
    /// Looked for once a minute: where nobody has left, that is one read of an empty index.
    private static let pause = Duration.seconds(60)
    /// Pages of one round; what is left then waits for the next.
    private static let pages = 1_000

    /// Those of the configuration in force.
    let servers: @Sendable () -> [ZulipServers]
    let world: World
    let journal: Journal

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await adoptHosts()
            while !Task.isCancelled {
                do { try await world.sleep(world.instant() + Self.pause) } catch { return }
                await sweep()
            }
        }
    }

    /// Once a start: a store from before may have hosts in their earlier form.
    private func adoptHosts() async {
        for servers in servers() {
            do throws(StoreError) { try await servers.adoptHosts() } catch {
                journal.note("sweep failed", [.code: ErrorCode(error)], level: .warning)
            }
        }
    }

    func sweep() async {
        for servers in servers() {
            do throws(StoreError) {
                var left = Self.pages
                while left > 0, !Task.isCancelled, try await servers.sweep() > 0 { left -= 1 }
            } catch {
                journal.note("sweep failed", [.code: ErrorCode(error)], level: .warning)
            }
        }
    }
}
