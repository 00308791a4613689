import NIOCore
import PushModel

/// One request while its body arrives: a state machine without a socket.
struct RequestAssembly {
    enum Step: Equatable {
        case goOn
        /// The client waits to be told before it sends the body.
        case sendContinue
        /// Answer now; what is still to come is thrown away.
        case refuse(IngressRefusal)
    }

    let head: CheckedHead
    /// `nil` where no face has the path.
    let entry: FaceEntry?
    let tag: Int
    let startedAt: ContinuousClock.Instant
    private let proxies: TrustedProxies
    private let bodyLimitBytes: Int
    /// Bytes held, each reserved with the listener.
    private(set) var received = 0
    private var body: ByteBuffer?

    init(_ head: CheckedHead, _ installed: InstalledRouter, at now: ContinuousClock.Instant) {
        self.head = head
        startedAt = now
        proxies = installed.proxies
        let target = installed.router.match(head.path)
        entry = target.map { installed.entries[$0.face] }
        tag = target?.tag ?? 0
        bodyLimitBytes = target?.bodyLimitBytes ?? 0
    }

    /// What follows from the head alone, before a byte of the body is read.
    var first: Step {
        if entry == nil { return head.hasBody ? .refuse(.notFound) : .goOn }
        if (head.contentLength ?? 0) > bodyLimitBytes { return .refuse(.bodyTooLarge) }
        return head.awaitsContinue && head.hasBody ? .sendContinue : .goOn
    }

    /// Takes a piece of the body if route and listener have room for it.
    mutating func take(_ piece: ByteBuffer, _ core: ListenerCore) -> Step {
        let count = piece.readableBytes
        guard received + count <= bodyLimitBytes else { return .refuse(.bodyTooLarge) }
        guard core.reserve(count) else { return .refuse(.overloaded) }
        received += count
        if body == nil {
            body = piece
            // A body in pieces is written into a buffer of its own, doubled as it grows.
        } else {
            body?.writeImmutableBuffer(piece)
        }
        return .goOn
    }

    /// When the rest of the body must be here: a grace, and what the bytes so far have earned.
    func deadline(_ limits: IngressLimits) -> ContinuousClock.Instant {
        let earned = Duration.milliseconds(Int64(received) * 1000 / Int64(max(1, limits.bodyBytesPerSecond)))
        return startedAt + limits.bodyGrace + earned
    }

    /// The finished request; `nil` where no face has the path.
    func inbound(socket: IPAddress, isTLS: Bool, _ core: ListenerCore) -> HTTPInbound {
        let (client, wasSecure) = proxies.client(behind: socket, head.fields)
        return HTTPInbound(
            head.verb, path: head.path, query: head.query, fields: head.fields, body: body ?? ByteBuffer(),
            client: core.key(of: client), isLoopback: socket.isLoopback && client.isLoopback,
            isSecure: isTLS || wasSecure, tag: tag)
    }
}
