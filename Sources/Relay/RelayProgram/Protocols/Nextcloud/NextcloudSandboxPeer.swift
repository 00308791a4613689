import NIOCore
import NIOPosix
import NIOSSL
import PushModel
import Simulators
import Synchronization
import WireFormats

/// The Nextcloud server of a sandbox, as far as a relay asks one: it says which key a user has (the identity
/// proof), over HTTPS, at `localhost`.
final class NextcloudSandboxPeer: SandboxPeer {
    /// What an identity proof is answered with.
    enum Answer: Sendable {
        /// The PEM of the user's public key.
        case key(String)
        case status(Int)
        /// 302 to that address.
        case redirect(String)
        /// Nothing, for as long as the asker waits.
        case silence
    }

    private struct State {
        var answers: [String: Answer] = [:]
        var asked: [String] = []
    }

    private let channel: any Channel
    private let authorityFile: String
    private let script: Script

    private final class Script: Sendable {
        let state = Mutex(State())

        /// - Parameter line: the first of a request.
        func answer(_ line: String) -> Answer {
            let path = line.split(separator: " ").dropFirst().first?.prefix { $0 != "?" } ?? ""
            let user = path.split(separator: "/").last.map(String.init) ?? ""
            return state.withLock { state in
                // A bound, because whoever reaches the sandbox may ask.
                if state.asked.count < 1_000 { state.asked.append(line) }
                return state.answers[user] ?? .status(404)
            }
        }
    }

    init(on sandbox: SandboxContext) async throws {
        let issued = try sandbox.authority.issue()
        let certificates = try NIOSSLCertificate.fromPEMBytes(Array(issued.certificatePEM.utf8))
        let key = try NIOSSLPrivateKey(bytes: Array(issued.privateKeyPEM.utf8), format: .pem)
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key)))
        let script = Script()
        channel = try await ServerBootstrap(group: sandbox.group)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    let pipeline = child.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    try pipeline.addHandler(ProofAnswerer { script.answer($0) })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        authorityFile = sandbox.authorityFile
        self.script = script
    }

    private var port: Int { channel.localAddress?.port ?? 0 }
    /// What stands behind the `@` of its users' cloud ids.
    var authority: String { "localhost:\(port)" }

    /// Says from now on what a user's proof is answered with.
    func set(_ user: String, _ answer: Answer) { script.state.withLock { $0.answers[user] = answer } }
    /// Request lines so far.
    var asked: [String] { script.state.withLock(\.asked) }

    // MARK: As a sandbox's peer

    var urls: [String: String] { ["sandbox-nextcloud": "https://\(authority)"] }

    var purposes: [String: String] {
        [
            "sandbox-nextcloud":
                "A simulated Nextcloud server, which answers the relay's identity proofs alone. It takes no "
                + "logins and sends nothing: what stands behind the @ of a user's cloud id is \(authority)."
        ]
    }

    func point(_ instance: inout InstanceConfiguration) {
        guard var settings = instance.nextcloud, settings.privateHosts.isEmpty else { return }
        settings.privateHosts = [HTTPSBase(host: "localhost", port: port)]
        settings.caFile = authorityFile
        instance.settings = settings
    }

    func stop() async {
        // Nobody waits for what a sandbox says at its end.
        try? await channel.close()
    }
}

/// Answers one request of a connection, and ends it.
private final class ProofAnswerer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let answer: (String) -> NextcloudSandboxPeer.Answer
    private var bytes: [UInt8] = []

    init(_ answer: @escaping (String) -> NextcloudSandboxPeer.Answer) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytesView
        guard bytes.count < 16_384 else { return context.close(promise: nil) }
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
        let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
        bytes = []
        let line = head.split(separator: "\r\n", maxSplits: 1).first.map(String.init) ?? ""
        switch answer(line) {
        case .silence: return
        case .status(let status): say(context, status, "{}")
        case .redirect(let place): say(context, 302, "", "Location: \(place)\r\n")
        case .key(let pem):
            var json = JSONWriter()
            json.beginObject()
            json.beginObject("ocs")
            json.beginObject("data")
            json.member("public", pem)
            json.endObject()
            json.endObject()
            json.endObject()
            say(context, 200, String(decoding: json.bytes, as: UTF8.self))
        }
    }

    private func say(_ context: ChannelHandlerContext, _ status: Int, _ body: String, _ more: String = "") {
        let head =
            "HTTP/1.1 \(status) -\r\nContent-Type: application/json\r\nConnection: close\r\n\(more)"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        let out = context.channel.allocator.buffer(string: head + body)
        let channel = context.channel
        channel.writeAndFlush(out).whenComplete { _ in channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
