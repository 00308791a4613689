import HTTPIngress
import NIOPosix
import PushModel
import PushTesting
import ServiceLifecycle

@testable import RelayProgram

extension HTTPFace {
    /// Serves on a free port of this machine, which `body` is given.
    func serving(_ body: (_ port: Int) async throws -> Void) async throws {
        let listener = try HTTPListener(
            name, at: .init(host: "127.0.0.1", port: 0), router: try HTTPRouter([self]),
            group: MultiThreadedEventLoopGroup.singleton, world: .live, journal: .silent,
            metrics: sharedMetrics)
        let port = try await listener.open()
        let group = ServiceGroup(services: [listener], gracefulShutdownSignals: [], logger: silentLogger)
        try await beside(group.run, stop: group.triggerGracefulShutdown) { try await body(port) }
    }
}
