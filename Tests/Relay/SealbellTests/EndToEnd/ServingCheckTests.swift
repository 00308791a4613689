import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Testing

@testable import RelayProgram

/// What a command says of a relay whose admin listener does not answer.
@Suite("Whether a relay hangs", .timeLimit(.minutes(30)))
struct ServingCheckTests {
    /// A port on 127.0.0.1 that reads, and answers what it likes.
    private final class Port: Sendable {
        private final class Ear: ChannelInboundHandler, Sendable {
            typealias InboundIn = ByteBuffer
            private let answer: @Sendable (String) -> String?
            init(_ answer: @escaping @Sendable (String) -> String?) { self.answer = answer }
            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                guard let text = answer(String(buffer: unwrapInboundIn(data))) else { return }
                context.channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
            }
            func errorCaught(context: ChannelHandlerContext, error: any Error) {
                context.close(promise: nil)
            }
        }

        private let listener: any Channel

        init(_ answer: @escaping @Sendable (String) -> String?) async throws {
            listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { $0.pipeline.addHandler(Ear(answer)) }
                .bind(host: "127.0.0.1", port: 0).get()
        }

        /// What a server that listens here would write into its state directory.
        func write(_ folder: TemporaryFolder) throws {
            let port = try #require(listener.localAddress?.port)
            try RunFile(urls: ["admin": "http://127.0.0.1:\(port)"], ca: nil, publicKeys: [:], apps: [:])
                .write(state: folder.path)
        }

        func close() async throws { try await listener.close() }
    }

    /// - Returns: how a command ends, and what it says, with one of the two waits short.
    private func said(
        _ words: [String], _ folder: TemporaryFolder, _ change: (inout Shell) -> Void
    ) async -> (status: Ending, err: [String]) {
        let err = Lines()
        var shell = Shell(facts: facts(), world: .live, out: { _ in }, err: { err.add($0) })
        shell.waitPatiently()
        change(&shell)
        let status = await Sealbell.run(words + ["--at", folder.path], shell)
        return (status, err.all)
    }

    @Test(
        "Of a relay that hangs each command says so when the short wait is over, and does not take the long one",
        arguments: [["status"], ["origins", "list"], ["store", "trust-clock", "--yes"]])
    func hangs(_ words: [String]) async throws {
        let folder = try TemporaryFolder()
        let port = try await Port { _ in nil }
        try port.write(folder)
        let run = await said(words, folder) { $0.silence = .milliseconds(100) }
        #expect(run.status == .unavailable)
        #expect(run.err.count == 1 && run.err[0].contains("it hangs, has no descriptor left"), "\(run.err)")
        try await port.close()
    }

    @Test("A relay that serves has the long wait for its answer, and is not said to hang")
    func takesLong() async throws {
        let folder = try TemporaryFolder()
        let port = try await Port { head in
            head.hasPrefix("GET /health/live ") ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlive" : nil
        }
        try port.write(folder)
        let run = await said(["status"], folder) { $0.patience = .milliseconds(100) }
        #expect(run.status == .unavailable)
        #expect(run.err.count == 1 && run.err[0].contains("serves, but this answer did not come"))
        try await port.close()
    }
}
