import NIOCore
import NIOEmbedded
import PushModel
import WebSocket

/// What comes from a WebSocket: frames both ways, the answer to the upgrade, a SOCKS5 proxy's.
///
/// The first byte of an input says in what pieces the rest arrives; 0 is all at once.
let webSocketTargets: [String: Body] = [
    "websocket-client": { bytes in converse(.client, bytes) },
    "websocket-server": { bytes in converse(.server, bytes) },
    "websocket-upgrade": { bytes in
        var exchange = UpgradeExchange(to: relay, limits: limits, world: still)
        var input = ByteBuffer()
        for piece in pieces(bytes) {
            input.writeBytes(piece)
            guard exchange.take(&input) == .wait else { return }
            precondition(input.readableBytes <= limits.headBytes + piece.count)
        }
    },
    "socks5-answers": { bytes in
        let credentials = SOCKS5Proxy.Credentials(username: Secret([1]), password: Secret([2]))
        for credentials in [nil, credentials] {
            for address in [relay, literal] { negotiate(to: address, credentials, bytes) }
        }
    },
    "websocket-address": { bytes in
        guard let address = try? WebSocketAddress(String(decoding: bytes, as: UTF8.self)) else { return }
        precondition((1...65_535).contains(address.port) && (1...253).contains(address.host.utf8.count))
        precondition(address.target.utf8.first == 0x2F)
        let scheme = address.isSecure ? "wss" : "ws"
        let again = try? WebSocketAddress("\(scheme)://\(address.authority)\(address.target)")
        precondition(again == address, "one address in one form")
    }
]

private let limits: WebSocketLimits = {
    var limits = WebSocketLimits()
    // Small, so that inputs reach past them.
    (limits.messageBytes, limits.fragments, limits.headBytes) = (2_048, 8, 1_024)
    return limits
}()

private let relay = address("wss://relay.example.org/path")
private let literal = address("ws://[2001:db8::1]:8080")
private let moment = ContinuousClock.now
/// No time passes, and chance says zero.
private let still = World(
    now: { UnixTime(seconds: 1_767_225_600) }, instant: { moment }, sleep: { _ in }, random: { 0 })

private func address(_ url: String) -> WebSocketAddress {
    do { return try WebSocketAddress(url) } catch { preconditionFailure("an address of ours") }
}

/// The rest of the input in pieces of the first byte's size, or larger, so that there are 64 at most.
private func pieces(_ bytes: UnsafeRawBufferPointer) -> [UnsafeRawBufferPointer] {
    guard let first = bytes.first, bytes.count > 1 else { return [] }
    let size = first == 0 ? bytes.count : max(Int(first), bytes.count / 64 + 1)
    return stride(from: 1, to: bytes.count, by: size).map {
        UnsafeRawBufferPointer(rebasing: bytes[$0..<min($0 + size, bytes.count)])
    }
}

/// What stands behind a link: looks at what it is told.
private final class Listener: WebSocketUser {
    private(set) var isOpen = false
    private(set) var end: WebSocketEnd?

    func opened(_ link: WebSocketLink) { isOpen = true }

    func received(_ message: WebSocketMessage) {
        precondition(isOpen && end == nil && message.count <= limits.messageBytes)
        guard case .text(let text) = message else { return }
        precondition(String(validating: text.readableBytesView, as: UTF8.self) != nil)
    }

    func ponged(_ payload: ByteBuffer) { precondition(end == nil && payload.readableBytes <= 125) }
    func becameWritable() {}

    func ended(_ end: WebSocketEnd) {
        precondition(isOpen && self.end == nil, "an end is told once")
        self.end = end
    }
}

/// A link of that side on a channel in memory.
private struct Side {
    let listener = Listener()
    let channel: EmbeddedChannel

    init(_ role: WebSocketRole) {
        let loop = EmbeddedEventLoop()
        let link = WebSocketLink(role, user: listener, limits: limits, world: still, eventLoop: loop)
        channel = EmbeddedChannel(handlers: link.handlers, loop: loop)
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        // What the pipeline did not take is what the library refused.
        _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
    }

    /// Everything that the link wrote.
    func answers() -> [UInt8] {
        var out: [UInt8] = []
        while let piece = try? channel.readOutbound(as: ByteBuffer.self) { out += piece.readableBytesView }
        return out
    }

    func finish() { _ = try? channel.finish(acceptAlreadyClosed: true) }
}

/// Gives the bytes to one side, and its answers to the other, which must find them in order.
private func converse(_ role: WebSocketRole, _ bytes: UnsafeRawBufferPointer) {
    let side = Side(role)
    for piece in pieces(bytes) { side.take(piece) }
    let answers = side.answers()
    side.finish()
    precondition(side.listener.end != nil, "every end is told")
    guard !answers.isEmpty else { return }
    let other = Side(role == .client ? .server : .client)
    answers.withUnsafeBytes { other.take($0) }
    switch other.listener.end {
    case .failed(let code): preconditionFailure("our own frames broke a rule: \(code)")
    case .closed, nil: break
    }
    other.finish()
}

private func negotiate(
    to address: WebSocketAddress, _ credentials: SOCKS5Proxy.Credentials?, _ bytes: UnsafeRawBufferPointer
) {
    var handshake = SOCKSHandshake(to: address, credentials: credentials)
    var input = ByteBuffer()
    var sent = 0
    for piece in pieces(bytes) {
        input.writeBytes(piece)
        step: while true {
            switch handshake.take(&input) {
            case .wait: break step
            case .send:
                sent += 1
                precondition(sent <= 2)
            case .refused: return
            case .established:
                precondition(sent == (credentials == nil ? 1 : 2))
                return
            }
        }
        precondition(input.readableBytes < 262 + piece.count)
    }
}
