import NIOCore
import PushModel

extension PreparedRequests {
    /// Sends requests of the set-up; each must be answered by a 200.
    ///
    /// - Throws: `.setUpRefused`, `.unreachable`.
    func setUp(at address: RelayProcess.Address, _ eventLoop: any EventLoop) async throws {
        let drive = RequestDrive(
            host: address.host, port: address.port, prepared: self, pace: .max, eventLoop: eventLoop)
        let report = try await drive.run(connections: 8, patience: .seconds(600))
        guard report.answered(200) == count else { throw BenchError(.setUpRefused) }
    }
}
