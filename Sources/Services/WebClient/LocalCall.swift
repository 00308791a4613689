package import Dialling
package import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
package import PushModel

/// One HTTP/1.1 call to a server on this machine, on a connection of its own (RFC 9112).
///
/// For commands that speak to the admin listener or to a server, and for tests. It follows no redirection.
package struct LocalCall: Sendable {
    package struct Answer: Sendable {
        package var status: Int
        /// Names in small letters.
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]

        package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    package enum Fault: Error, Sendable {
        /// Nobody answers at the address, or TLS fails.
        case unreachable
        /// The connection ended, or the deadline passed, before a whole answer was there.
        case noAnswer
        case malformed
    }

    /// A page of origins is some 100 KB.
    package static let answerLimitBytes = 4 << 20
    /// Longer than the relay's own bound of an answer.
    package static let deadline = TimeAmount.seconds(30)
    /// At least so long is a connection waited for, TLS included, if the deadline is not nearer.
    private static let connecting = TimeAmount.seconds(5)

    package let host: String
    package let port: Int
    /// PEM authorities to trust instead of the system's; `nil`: plain HTTP.
    private let trust: NIOSSLContext?
    package private(set) var deadline: TimeAmount
    private let dialer: Dialer

    /// - Parameter url: a base URL as `run.json` has it: scheme, address, port.
    /// - Parameter authority: PEM; for https alone; `nil`: the system's.
    /// - Parameter checksCertificate: `false` asks whoever answers, and is for calls alone that hold no
    ///   secret and whose answer nobody gains by forging.
    /// - Returns: `nil` when the URL has another form, or the authority is none.
    package init?(
        url: String, authority: [UInt8]? = nil, checksCertificate: Bool = true,
        deadline: TimeAmount = Self.deadline, dialling: DialOptions = DialOptions()
    ) {
        self.deadline = deadline
        dialer = Dialer(dialling)
        let isSecure = url.hasPrefix("https://")
        guard isSecure || url.hasPrefix("http://") else { return nil }
        let place = url.dropFirst(isSecure ? 8 : 7)
        guard let colon = place.lastIndex(of: ":"), let port = Int(place[place.index(after: colon)...]) else {
            return nil
        }
        host = place[..<colon].filter { $0 != "[" && $0 != "]" }
        self.port = port
        guard isSecure else {
            trust = nil
            return
        }
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !checksCertificate { configuration.certificateVerification = .none }
        do {
            if let authority {
                configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(authority))
            }
            trust = try NIOSSLContext(configuration: configuration)
        } catch {
            return nil
        }
    }

    /// The same call with another deadline.
    package func within(_ deadline: TimeAmount) -> LocalCall {
        var call = self
        call.deadline = deadline
        return call
    }

    /// Asks with a method, a path and perhaps a body; the connection ends behind the answer.
    package func ask(
        _ method: String, _ path: String, headers: [(name: String, value: Secret)] = [], body: Secret? = nil
    ) async throws(Fault) -> Answer {
        let place = host.contains(":") ? "[\(host)]" : host
        var bytes = Array("\(method) \(path) HTTP/1.1\r\nHost: \(place):\(port)\r\n".utf8)
        bytes += Array("Connection: close\r\n".utf8)
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        for header in headers {
            bytes += Array("\(header.name): ".utf8)
            header.value.reveal { bytes += $0 }
            bytes += [0x0D, 0x0A]
        }
        if let body { bytes += Array("Content-Length: \(body.count)\r\n".utf8) }
        bytes += [0x0D, 0x0A]
        body?.reveal { bytes += $0 }
        return try await send(bytes)
    }

    /// Sends bytes as they are, and waits for one answer.
    package func send(_ bytes: [UInt8]) async throws(Fault) -> Answer {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let least = min(deadline, Self.connecting).nanoseconds
        let connecting = Duration.nanoseconds(max(deadline.nanoseconds / 6, least))
        let dialled: Dialled<EventLoopFuture<Answer>>
        do throws(DialFault) {
            dialled = try await dialer.dial(host, port, on: loop, within: connecting) { channel, attempt in
                try prepare(channel, attempt)
            }
        } catch {
            if case .failed(let fault) = error, let fault = fault as? Fault { throw fault }
            throw .unreachable
        }
        let channel = dialled.channel
        let timer = loop.scheduleTask(in: deadline) { channel.close(promise: nil) }
        defer {
            timer.cancel()
            channel.close(promise: nil)
        }
        // A peer that has refused a long body may have closed already; its answer is read all the same.
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        do {
            return try await dialled.ready.get()
        } catch {
            throw error as? Fault ?? .unreachable
        }
    }

    /// One address's channel, up to TLS: the answer that will come on it.
    private func prepare(
        _ channel: any Channel, _ attempt: DialAttempt<EventLoopFuture<Answer>>
    ) throws {
        let answer = channel.eventLoop.makePromise(of: Answer.self)
        var handlers: [any ChannelHandler] = [AnswerReader(answer, attempt)]
        do {
            if let trust {
                let name = IPAddress(host) == nil ? host : nil
                handlers.insert(try NIOSSLClientHandler(context: trust, serverHostname: name), at: 0)
            }
            try channel.pipeline.syncOperations.addHandlers(handlers)
        } catch {
            answer.fail(Fault.unreachable)
            throw Fault.unreachable
        }
        if trust == nil { attempt.succeed(answer.futureResult) }
    }
}

/// Gathers one answer. Belongs to its event loop.
private final class AnswerReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let answer: EventLoopPromise<LocalCall.Answer>
    private let attempt: DialAttempt<EventLoopFuture<LocalCall.Answer>>
    private var bytes: [UInt8] = []
    private var isDone = false

    init(
        _ answer: EventLoopPromise<LocalCall.Answer>,
        _ attempt: DialAttempt<EventLoopFuture<LocalCall.Answer>>
    ) {
        self.answer = answer
        self.attempt = attempt
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { attempt.succeed(answer.futureResult) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        bytes += unwrapInboundIn(data).readableBytesView
        switch LocalAnswer.parse(bytes) {
        case .unfinished, .untilTheEnd:
            if bytes.count > LocalCall.answerLimitBytes { end(context, .failure(.malformed)) }
        case .malformed: end(context, .failure(.malformed))
        case .whole(let whole): end(context, .success(whole))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .untilTheEnd(let whole) = LocalAnswer.parse(bytes) { return end(context, .success(whole)) }
        end(context, .failure(.noAnswer))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A reset behind the answer is no fault; before it the reset ends the channel.
        if error is NIOSSLError || error is NIOSSLExtraError || error is BoringSSLError {
            end(context, .failure(.unreachable))
        }
        context.close(promise: nil)
    }

    private func end(_ context: ChannelHandlerContext, _ result: Result<LocalCall.Answer, LocalCall.Fault>) {
        guard !isDone else { return }
        isDone = true
        switch result {
        case .success(let whole): answer.succeed(whole)
        case .failure(let fault):
            answer.fail(fault)
            attempt.fail(fault)
        }
        context.close(promise: nil)
    }
}
