import CoreMetrics
import HTTPIngress
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WireFormats

@testable import AdminIngress
@testable import RelayProgram

/// Where a relay's webhook leads: a server of its own, with TLS, that notes what it is told.
final class AlertReceiver: Sendable {
    struct Notice: Sendable, Hashable {
        let kind: String
        let subject: String
        let phase: String
    }

    let told = Noted<[Notice]>([])
    /// What it answers.
    let status = Noted(200)
    private let listener: HTTPListener

    private struct Face: HTTPFace {
        let name = configured("hook")
        let routes = [HTTPRoute(.exact("/hook"), bodyLimitBytes: 16 << 10)]
        let take: @Sendable (HTTPInbound) -> Int

        func respond(to inbound: HTTPInbound) async -> HTTPOutbound { .text(take(inbound), "") }
    }

    private init(_ stage: RelayStage) throws {
        let issued = try stage.sandbox.authority.issue()
        let (chain, key) = (stage.folder.path + "/hook.pem", stage.folder.path + "/hook.key")
        try writeFile(chain, Array(issued.certificatePEM.utf8), replacing: true)
        try writeFile(key, Array(issued.privateKeyPEM.utf8), replacing: true)
        let (told, status) = (told, status)
        let face = Face { inbound in
            // What is no JSON is noted as nothing, and missed by the test.
            let json = inbound.withBody { try? JSONValue.parse($0) }
            if let kind = json?["alert"]?.string, let subject = json?["subject"]?.string,
                let phase = json?["phase"]?.string, status.value == 200
            {
                told.change { $0.append(Notice(kind: kind, subject: subject, phase: phase)) }
            }
            return status.value
        }
        listener = try HTTPListener(
            configured("hook"), at: .init(host: "127.0.0.1", port: 0),
            tls: TLSFiles(certificateChain: chain, privateKey: key), router: HTTPRouter([face]),
            group: MultiThreadedEventLoopGroup.singleton, world: .live, journal: .silent,
            metrics: NOOPMetricsHandler.instance)
    }

    /// Runs `body` with a receiver, and the lines of a configuration that lead to it.
    static func with(
        _ stage: RelayStage, _ body: (AlertReceiver, String) async throws -> Void
    ) async throws {
        try writeFile(
            stage.folder.path + "/hook.secret", Array("a secret of an operator".utf8), replacing: true)
        let receiver = try AlertReceiver(stage)
        let port = try await receiver.listener.open()
        // The receiver's certificate is the sandbox's: without `ca` nothing would be told.
        let text = """
              webhook: { url: "https://localhost:\(port)/hook", secret_file: hook.secret,
                         ca: "\(stage.sandbox.authorityFile)" }

            """
        try await beside(receiver.listener.run) { try await body(receiver, text) }
    }

    /// The phases told of one subject, in order.
    func phases(_ kind: String, _ subject: String = "") -> [String] {
        told.value.filter { $0.kind == kind && $0.subject == subject }.map(\.phase)
    }

    /// Waits until exactly these have been told of it.
    func hears(
        _ phases: String..., of kind: String, _ subject: String = "", file: String = #fileID,
        line: Int = #line
    ) async throws {
        try await asked(for: "\(kind) \(subject) \(phases)", file: file, line: line) {
            self.phases(kind, subject).count >= phases.count
        }
        #expect(self.phases(kind, subject) == phases, "\(kind) \(subject)")
    }
}
