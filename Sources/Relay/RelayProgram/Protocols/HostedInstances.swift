import PushModel
import ServiceLifecycle
import Synchronization

/// The instances in force, for those that are made before they are.
final class Neighbours: Sendable {
    private struct Watched {
        weak var hosted: HostedInstances?
    }

    private let watched = Mutex(Watched())

    func watch(_ instances: HostedInstances) { watched.withLock { $0.hosted = instances } }

    var instances: [any HostedInstance] { watched.withLock(\.hosted)?.all ?? [] }
}

/// The instances in force, and what they run. A reload adds and removes them, and changes those that stay
/// without ending what can go on.
final class HostedInstances: Service {
    private struct State {
        var instances: [any HostedInstance] = []
        var services: [any InstanceService] = []
        /// Those that nobody runs yet.
        var waiting: [any InstanceService] = []
        var isStopping = false
    }

    /// Between sweeps. Where nobody has left anything behind, one is a read of an empty index; and it is the
    /// shortest span that anything is remembered for.
    private static let sweepEvery = Duration.seconds(60)
    /// Pages of one sweep; what is left then waits for the next.
    private static let pages = 1_000

    private let hosting: Hosting
    private let context: HostingContext
    private let state = Mutex(State())
    private let changed = Bell()

    init(_ hosting: Hosting, _ context: HostingContext) { (self.hosting, self.context) = (hosting, context) }

    /// Those in force, in the order of the configuration.
    var all: [any HostedInstance] { state.withLock(\.instances) }

    /// Makes the instances of a configuration; nothing is in force yet.
    ///
    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    func make(_ configuration: RelayConfiguration) throws(CommandFailure) -> [any HostedInstance] {
        let current = all
        var made: [any HostedInstance] = []
        for instance in configuration.instances {
            let making = InstanceMaking(
                instance: instance, configuration: configuration, context: context,
                old: current.first { $0.name == instance.name })
            made.append(try hosting.host(making))
        }
        return made
    }

    func adopt(_ instances: [any HostedInstance]) {
        let services = instances.flatMap { $0.takeForce() }
        let gone = state.withLock { state in
            let known = Set(state.services.map { ObjectIdentifier($0) })
            let kept = Set(services.map { ObjectIdentifier($0) })
            let gone = state.services.filter { !kept.contains(ObjectIdentifier($0)) }
            state.waiting.removeAll { !kept.contains(ObjectIdentifier($0)) }
            state.waiting += services.filter { !known.contains(ObjectIdentifier($0)) }
            (state.instances, state.services) = (instances, services)
            return gone
        }
        for service in gone { service.stop() }
        changed.ring()
    }

    // MARK: Running

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { await self.sweepRegularly() }
                    await self.runServices()
                    group.cancelAll()
                }
            } onCancel: {
                self.close { $0.stop() }
            }
        } onGracefulShutdown: {
            self.close { $0.end() }
        }
    }

    private func runServices() async {
        await withDiscardingTaskGroup { group in
            while let fresh = self.fresh() {
                for service in fresh {
                    group.addTask {
                        do { try await service.run() } catch {
                            // Those that stay go on: one protocol's fault is not the others'.
                            self.context.journal.note(
                                "instance service ended", [.code: ErrorCode("unexpected")], level: .error)
                        }
                    }
                }
                await changed.waitThroughCancellation()
            }
        }
    }

    /// Begins no service any more, and ends those that run.
    private func close(_ end: (any InstanceService) -> Void) {
        let all = state.withLock { state in
            state.isStopping = true
            return state.services
        }
        for service in all { end(service) }
        changed.ring()
    }

    private func fresh() -> [any InstanceService]? {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.isStopping ? nil : state.waiting
        }
    }

    // MARK: Sweeping

    private func sweepRegularly() async {
        let world = context.world
        while !Task.isCancelled {
            // The sleep ends early only by cancellation, which ends the relay.
            do { try await world.sleep(world.instant() + Self.sweepEvery) } catch { return }
            await sweep()
        }
    }

    /// A page at a time, so that others' commits come in between.
    func sweep() async {
        for instance in all {
            do throws(StoreError) {
                var left = Self.pages
                while left > 0, !Task.isCancelled, try await instance.sweep() { left -= 1 }
            } catch {
                note(error)
            }
        }
    }

    private func note(_ error: StoreError) {
        context.journal.note("sweep failed", [.code: ErrorCode(error)], level: .warning)
    }
}
