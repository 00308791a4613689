import Foundation
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

@testable import RelayProgram

/// What a command says of a relay whose admin listener is not the standard one, or does not answer.
@Suite("Whether a relay serves, and whether it hangs", .timeLimit(.minutes(30)))
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

    /// The words of the image's health check, behind the program's name.
    private static func healthCheck() throws -> [String] {
        let file = repositoryRoot().appending(path: "packaging/container/Containerfile")
        let text = try String(contentsOf: file, encoding: .utf8).replacing("\\\n", with: "")
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("HEALTHCHECK ") })
        let words = try #require(line.firstMatch(of: #/ CMD (\[.*\])$/#)?.1)
        let all = try JSONDecoder().decode([String].self, from: Data(words.utf8))
        #expect(all.first == "/usr/bin/sealbell")
        return Array(all.dropFirst())
    }

    @Test(
        "The image's health check finds a relay that serves, whatever its admin listener is",
        arguments: [
            "admin: { bind: \"127.0.0.1:0\" }",
            "admin: { bind: \"0.0.0.0:0\", token_file: token }",
            // A name's certificate, of an authority that nobody here trusts.
            "admin: { bind: \"127.0.0.1:0\", token_file: token, tls: { cert: a.pem, key: a.key } }",
            ""
        ])
    func listeners(_ admin: String) async throws {
        let text = RelayStage.text.replacing("admin: { bind: \"127.0.0.1:0\" }", with: admin)
        let issued = try CertificateAuthority().issue()
        func prepare(_ folder: String) throws {
            for (name, content) in [
                ("token", "one token of an operator"), ("a.pem", issued.certificatePEM),
                ("a.key", issued.privateKeyPEM)
            ] {
                try writeFile("\(folder)/\(name)", Array(content.utf8), replacing: true)
            }
        }
        let words = try Self.healthCheck()
        try await RelayStage.with(text, prepare: prepare) { stage in
            let folder = stage.folder.path
            try writeFile(
                folder + "/sealbell.yaml", Array(minimal(appending: "state: state").utf8), replacing: true)
            let before = await CommandRun.of(words, in: folder)
            #expect(before.status == .unavailable, "\(before.all)")
            try await stage.run { relay in
                _ = try Operator(relay)
                let found = await CommandRun.of(words, in: folder)
                #expect(found.status == .done, "\(found.all)")
                #expect(found.out.count == 1 && found.out[0].hasPrefix("The relay serves: http"))
                for other in ["--json", "--ca=a.pem", "--token-file=token"] {
                    #expect(await CommandRun.of(words + [other], in: folder).status == .usage, "\(other)")
                }
            }
        }
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
        "Of a relay that hangs, each command says so when the short wait is over",
        arguments: [
            ["status"], ["status", "--check"], ["origins", "list"], ["store", "trust-clock", "--yes"]
        ])
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
        #expect(await said(["status", "--check"], folder) { _ in }.status == .done)
        let run = await said(["status"], folder) { $0.patience = .milliseconds(100) }
        #expect(run.status == .unavailable)
        #expect(run.err.count == 1 && run.err[0].contains("serves, but this answer did not come"))
        try await port.close()
    }

    @Test("Another program in the relay's place is not taken for it, and a relay without listeners runs")
    func others() async throws {
        let folder = try TemporaryFolder()
        let port = try await Port { _ in "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" }
        try port.write(folder)
        let run = await said(["status", "--check"], folder) { _ in }
        #expect(run.status == .unavailable && run.err.first?.contains("is no relay") == true)
        try RunFile(urls: [:], ca: nil, publicKeys: [:], apps: [:]).write(state: folder.path)
        #expect(await said(["status", "--check"], folder) { _ in }.status == .done)
        try await port.close()
    }
}
